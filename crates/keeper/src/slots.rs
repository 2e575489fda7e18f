//! The processes of dead workers: keeps their statuses, and reaps all other children.

use lastbyte_sys::registry::{Exit, Leader, Place, Registry};
use lastbyte_sys::{Errno, adopted, orphans};

use crate::clock;
use crate::machine::{Duty, Seen, is_kept};
use crate::message::Told;

/// The slots whose leaders may be children of the keeper. The living worker's are not among them:
/// its leaders are its own children.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    places: Vec<Place>,
    /// A leader has exited, and not all of it could be seen.
    is_unseen: bool,
}

impl Slots {
    /// Takes over what a dead worker has entered.
    pub(crate) fn adopt(&mut self, registry: &Registry) {
        self.places = registry.used().collect();
    }

    /// Does what is due for each slot, and reaps every other child that has exited, except the
    /// worker.
    pub(crate) fn look(&mut self, living: Option<u32>, worker: Option<i32>) {
        let seen = self.seen();
        self.is_unseen = false;
        for (place, slot) in self.places.iter().zip(&seen) {
            self.is_unseen |= !do_duty(*place, slot.duty(living, &seen));
        }
        // One that its worker has freed may be in use again, by a process of that worker.
        self.places.retain(|place| {
            let slot = see(*place);
            slot.is_adopted(living) && slot.pid.is_some() && slot.leader != Leader::Reaped
        });
        reap_others(&self.seen(), worker);
    }

    /// Whether a zombie waits for its ending to be journalled, or for a descriptor to look at it.
    /// Nothing tells the keeper when it is.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_unseen
            || self.seen().iter().any(|slot| slot.exit_is_known || slot.leader == Leader::Released)
    }

    /// What is known of the leader with this number.
    pub(crate) fn ask(&self, pid: i32) -> Told {
        let is_it = |slot: &&Seen| slot.pid == Some(pid) && slot.leader == Leader::Kept;
        match self.seen().iter().find(is_it) {
            Some(slot) if slot.exit_is_known => Told::Exited,
            Some(_) if adopted::peek(pid).is_ok() => Told::Running,
            Some(_) | None => Told::Unknown,
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.places.iter().map(|place| see(*place)).collect()
    }
}

fn see(place: Place) -> Seen {
    Seen {
        generation: place.generation(),
        pid: place.pid(),
        leader: place.leader(),
        exit_is_known: place.exit().is_some(),
    }
}

/// Whether it is done, as far as it can be now.
fn do_duty(place: Place, duty: Duty) -> bool {
    let Some(pid) = place.pid() else { return true };
    match duty {
        Duty::None => {}
        Duty::WriteExit => {
            // One that is no child of ours is left to the worker, which can ask.
            if let Ok(Some((status, usage))) = adopted::peek(pid) {
                let executed = match adopted::has_executed(pid) {
                    Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => return false,
                    // Without /proc it is not known.
                    executed => executed.unwrap_or(true),
                };
                place.set_exit(Exit { status, usage, executed, at: clock::both() });
            }
        }
        Duty::Reap => {
            // It had exited before it was released: one that runs is another with its number, and
            // one that is no child of ours was reaped by its worker.
            _ = adopted::reap(pid);
            place.reaped();
        }
        Duty::OnlySay => place.reaped(),
    }
    true
}

/// Orphans of commands, stand-ins, and what is no slot's any more.
fn reap_others(slots: &[Seen], worker: Option<i32>) {
    loop {
        let is_other = |pid: &i32| Some(*pid) != worker && !is_kept(*pid, slots);
        let reaped = orphans::children().into_iter().filter(is_other);
        // A list may miss a child if others are reaped meanwhile.
        if reaped.filter(|pid| matches!(adopted::reap(*pid), Ok(Some(_)))).count() == 0 {
            return;
        }
    }
}
