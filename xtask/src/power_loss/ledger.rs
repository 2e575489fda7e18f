//! What was acknowledged before the power went, and what was shown after it.
#![expect(clippy::print_stdout, reason = "prints figures")]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::MARK;

/// Every process that can still be shown, by the name of its job.
#[derive(Default)]
pub(super) struct Ledger {
    known: BTreeMap<String, Known>,
    shown: BTreeMap<String, Shown>,
    boot: u64,
    checked: bool,
    counts: BTreeMap<&'static str, u64>,
    /// Endings that were lost, with the kernel's defaults: how long they had been acknowledged.
    lost_ages: Vec<Duration>,
    /// Those that survived, the same.
    kept_ages: Vec<Duration>,
    pub(super) wrong: Vec<String>,
}

/// What is known of a process.
#[derive(Default)]
struct Known {
    /// `None` until its start is acknowledged.
    id: Option<String>,
    ended: Option<Instant>,
    /// It was to be forgotten; the answer may not have come.
    forget: bool,
    /// How long its ending had been acknowledged when the power went.
    age: Option<Duration>,
    /// With the kernel's defaults.
    is_real: bool,
    /// What a check has shown, which must stay.
    settled: Option<String>,
}

struct Shown {
    id: String,
    phase: String,
}

impl Ledger {
    /// A machine boots.
    pub(super) fn boots(&mut self) {
        self.boot += 1;
        self.checked = false;
        self.shown.clear();
    }

    pub(super) fn is_checked(&self) -> bool {
        self.checked
    }

    /// Takes a line of the console. Returns whether it ends the checks of this boot.
    pub(super) fn take(&mut self, line: &str, at: Instant) -> bool {
        let Some(line) = line.strip_prefix(MARK) else {
            if !line.is_empty() {
                println!("    {line}");
            }
            return false;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["wrong", ..] => self.wrong(line.trim_start().trim_start_matches("wrong ")),
            ["start", name] => _ = self.known.insert(name.into(), Known::default()),
            ["started", name, id] => self.know(name).id = Some(id.into()),
            ["ended", name, _] => {
                self.count("endings acknowledged");
                self.know(name).ended = Some(at);
            }
            ["forget", name, _] => self.know(name).forget = true,
            ["shown", name, id, phase, dropped] => self.show(name, (id, phase), dropped != "0"),
            ["key", name, id, age] => self.check_key(name, id, age == "new"),
            ["checked"] => {
                self.settle_all();
                return true;
            }
            // The last line may be cut off.
            _ => {}
        }
        false
    }

    /// The power went at this time.
    pub(super) fn power_went(&mut self, killed: Instant, is_real: bool) {
        for known in self.known.values_mut().filter(|known| known.settled.is_none()) {
            if let Some(ended) = known.ended.take() {
                known.age = Some(killed.saturating_duration_since(ended));
                known.is_real = is_real;
            }
        }
    }

    /// Acknowledged starts of late, to be sent again after the boot.
    pub(super) fn keys_to_repeat(&self) -> Vec<String> {
        let number = |name: &str| {
            let (boot, nth) = name.split_once('.')?;
            (boot.parse() == Ok(self.boot)).then(|| nth.parse().ok())?
        };
        let acknowledged = self.known.iter().filter(|(_, one)| one.id.is_some() && !one.forget);
        let mut starts: Vec<(u64, &String)> =
            acknowledged.filter_map(|(name, _)| Some((number(name)?, name))).collect();
        starts.sort();
        starts.into_iter().rev().take(40).map(|(_, name)| name.clone()).collect()
    }

    pub(super) fn summary(&self) -> String {
        let phase =
            |wanted: &str| self.shown.values().filter(|shown| shown.phase == wanted).count();
        format!(
            "shown {} ended, {} lost; wrong so far {}",
            phase("ended"),
            phase("lost"),
            self.wrong.len()
        )
    }

    pub(super) fn report(&mut self) {
        for (what, count) in &self.counts {
            println!("  {count:6} {what}");
        }
        self.lost_ages.sort();
        self.kept_ages.sort();
        let seconds = |age: Option<&Duration>| {
            age.map_or("-".into(), |age| format!("{:.1} s", age.as_secs_f64()))
        };
        let [lost, kept] = [&self.lost_ages, &self.kept_ages];
        let [newest, oldest, kept_newest] = [lost.first(), lost.last(), kept.first()].map(seconds);
        println!(
            "  with the kernel's defaults, by the time from the acknowledgement to the power loss:"
        );
        println!("    {} endings lost, {newest} to {oldest}", lost.len());
        println!("    {} endings kept, the newest {kept_newest}", kept.len());
        println!("  wrong      {}", self.wrong.len());
        self.wrong.iter().for_each(|wrong| println!("    {wrong}"));
    }

    fn show(&mut self, name: &str, (id, phase): (&str, &str), has_gaps: bool) {
        if has_gaps {
            self.count(if phase == "lost" { "lost with gaps" } else { "ended with gaps" });
        }
        if !self.known.contains_key(name) {
            self.wrong(&format!("{name} is shown, and was gone or never started"));
        }
        let shown = Shown { id: id.into(), phase: phase.into() };
        if self.shown.insert(name.into(), shown).is_some() {
            self.wrong(&format!("{name} is shown twice"));
        }
    }

    fn settle_all(&mut self) {
        let names: Vec<String> = self.known.keys().cloned().collect();
        names.iter().for_each(|name| self.settle(name));
        self.checked = true;
    }

    /// Compares what is known of a process of an earlier boot with what is shown.
    fn settle(&mut self, name: &str) {
        let Some(known) = self.known.get_mut(name) else { return };
        let shown = self.shown.get(name);
        let (was, forget) = (known.settled.clone(), known.forget);
        let is = shown.map_or("gone", |shown| &shown.phase).to_owned();
        let same_id = shown.is_none_or(|shown| known.id.as_ref().is_none_or(|id| *id == shown.id));
        if let Some(shown) = shown {
            known.id = Some(shown.id.clone());
        }
        let (age, is_real) = (known.age.take().filter(|_| !forget), known.is_real);
        known.settled = Some(is.clone());
        if !same_id {
            self.wrong(&format!("{name} has another id"));
        }
        match (&was, is.as_str()) {
            (_, "gone") if forget => {}
            (Some(was), is) if was != is => {
                self.wrong(&format!("{name} was {was} after a boot, and is {is} after the next"));
            }
            (Some(_), _) => {}
            (None, "gone") => self.count("started and gone"),
            (None, _) if forget => self.count("forgotten and back"),
            (None, "lost") => self.count("shown as lost"),
            (None, _) => self.count("shown as ended"),
        }
        if is == "gone" {
            self.known.remove(name);
        }
        if let Some(age) = age {
            self.count_ending(is == "ended", age, is_real);
        }
    }

    /// An ending had been acknowledged for so long when the power went.
    fn count_ending(&mut self, is_kept: bool, age: Duration, is_real: bool) {
        let (what, ages) = if is_kept {
            ("acknowledged endings kept", &mut self.kept_ages)
        } else {
            ("acknowledged endings lost", &mut self.lost_ages)
        };
        ages.extend(Some(age).filter(|_| is_real));
        self.count(what);
    }

    /// A start that was repeated after the boot: it gives its process, or another if that is gone.
    fn check_key(&mut self, name: &str, id: &str, is_new: bool) {
        self.count(if is_new { "keys free again" } else { "keys that gave their process" });
        let shown = self.shown.get(name).map(|shown| shown.id.as_str());
        if shown != Some(id).filter(|_| !is_new) {
            self.wrong(&format!("{name}: its key gives {id} (new: {is_new}), shown is {shown:?}"));
        }
        if is_new {
            let id = Some(id.into());
            self.known.insert(name.into(), Known { id, ..Known::default() });
        }
    }

    fn know(&mut self, name: &str) -> &mut Known {
        self.known.entry(name.into()).or_default()
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn wrong(&mut self, what: &str) {
        println!("    WRONG {what}");
        self.wrong.push(format!("boot {}: {what}", self.boot));
    }
}
