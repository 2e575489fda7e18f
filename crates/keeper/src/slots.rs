//! The processes of dead workers: keeps their statuses, and reaps all other children.

use lastbyte_sys::registry::{Exit, Leader, Place, Registry};
use lastbyte_sys::{Errno, adopted, orphans};

use crate::clock;
use crate::machine::{Duty, Seen, is_kept};

/// The slots whose leaders may be children of the keeper. The living worker's are not among them:
/// its leaders are its own children.
#[derive(Debug)]
pub(crate) struct Slots {
    registry: Registry,
    places: Vec<Place>,
    /// A leader has exited, and not all of it could be seen.
    is_unseen: bool,
}

impl Slots {
    pub(crate) fn new(registry: Registry) -> Self {
        Self { registry, places: Vec::new(), is_unseen: false }
    }

    /// Takes over what a dead worker has entered.
    pub(crate) fn adopt(&mut self) {
        self.places = self.registry.used().collect();
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
        self.reap_others(worker);
    }

    /// Orphans of commands, stand-ins, and what is no slot's any more.
    fn reap_others(&self, worker: Option<i32>) {
        loop {
            let has_exited = |pid: &i32| matches!(adopted::peek(*pid), Ok(Some(_)));
            let mut zombies = orphans::children();
            zombies.retain(|pid| Some(*pid) != worker && has_exited(pid));
            if zombies.is_empty() {
                return;
            }
            // Of all slots, and only now: the worker may have died since we last looked for it, and
            // then its leaders are among our children before we have adopted its slots.
            let slots: Vec<Seen> = self.registry.used().map(see).collect();
            let others = zombies.into_iter().filter(|pid| !is_kept(*pid, &slots));
            // A list may miss a child if others are reaped meanwhile.
            if others.filter(|pid| matches!(adopted::reap(*pid), Ok(Some(_)))).count() == 0 {
                return;
            }
        }
    }

    /// Whether a zombie waits for its ending to be journalled, or for a descriptor to look at it.
    /// Nothing tells the keeper when it is.
    pub(crate) fn is_waiting(&self) -> bool {
        self.is_unseen
            || self.seen().iter().any(|slot| slot.exit_is_known || slot.leader == Leader::Released)
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

#[cfg(test)]
mod tests {
    use super::*;
    use lastbyte_sys::spawn::{Mechanism, Output, Request, Spawned, Spawners, Stdin, open_ends};
    use lastbyte_testkit::eventually;

    /// A keeper may look while its worker dies, and then has the worker's leaders before it knows.
    #[test]
    fn a_leader_is_not_reaped_as_an_orphan_before_its_slot_is_adopted() {
        let (registry, _file) = Registry::create().unwrap();
        registry.header().generation.store(1, std::sync::atomic::Ordering::SeqCst);
        let slot = registry.enter(1).unwrap();
        let (spawners, answers) = Spawners::start(1, Mechanism::Clone3, None).unwrap();
        let (_ours, childs) = open_ends(Stdin::Null, Output::Merged).unwrap();
        let request = Request {
            programs: vec![c"/bin/true".into()],
            argv: vec![c"true".into()],
            cwd: c"/".into(),
            place: Some(slot.place()),
            ..Request::default()
        };
        spawners.submit(1, request, &childs).unwrap();
        let mut answer = None;
        eventually("it is started", || {
            answer = answers.receive().ok().flatten();
            answer.is_some()
        });
        let Some(Ok(Spawned::Held(child))) = answer.map(|answer| answer.result) else { panic!() };
        let is_zombie = || matches!(adopted::peek(child.pid()), Ok(Some(_)));
        eventually("it exits", is_zombie);
        Slots::new(registry).look(Some(1), None);
        assert!(is_zombie(), "its status is still there");
    }
}
