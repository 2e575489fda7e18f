//! The recorded figures, in `xtask/cost.txt`, and how far counts may differ from them.

use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::Cost;
use super::door::Door;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cost.txt");
const TEXT: &str = include_str!("../../../cost.txt");
const HEAD: &str = "\
# What one command costs lastbyte, by door: written by `cargo xtask cost --record`, compared by
# `cargo xtask cost --check`. Debug build, x86_64.
#
# cgroups  door   system calls  context switches  allocations
";

/// The cost of a command through one API, with or without a cgroup for each command.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) has_cgroups: bool,
    pub(super) door: Door,
    pub(super) cost: Cost,
}

impl Row {
    fn is_of_same(&self, other: &Self) -> bool {
        (self.has_cgroups, self.door) == (other.has_cgroups, other.door)
    }
}

/// One of the counts, and how far it may differ from the record: more than twice as far as in
/// forty runs, half of them on a busy machine.
struct Figure {
    name: &'static str,
    of: fn(&Cost) -> f64,
    leeway: fn(&Row) -> f64,
}

const FIGURES: [Figure; 3] = [
    Figure {
        name: "system calls",
        of: |cost| cost.system_calls,
        leeway: |recorded| match recorded {
            Row { door: Door::Run, cost, .. } => 0.02 * cost.system_calls,
            // On a busy machine a tree is searched again.
            Row { has_cgroups: false, .. } => 1.5,
            Row { has_cgroups: true, .. } => 0.7,
        },
    },
    Figure {
        name: "context switches",
        of: |cost| cost.context_switches,
        // How often threads wait for each other depends on the scheduler.
        leeway: |recorded| 0.6 * recorded.cost.context_switches,
    },
    Figure {
        name: "allocations",
        of: |cost| cost.allocations,
        leeway: |recorded| match recorded {
            Row { door: Door::Run, cost, .. } => 0.02 * cost.allocations,
            Row { .. } => 3.0,
        },
    },
];

/// The figures above the record and those below it, a line each.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Changes {
    pub(super) grown: Vec<String>,
    pub(super) fallen: Vec<String>,
}

pub(super) fn compare(rows: &[Row], recorded: &[Row]) -> Changes {
    let mut changes = Changes::default();
    for row in rows {
        let Some(old) = recorded.iter().find(|old| row.is_of_same(old)) else {
            changes.grown.push(format!("{:<5}  not recorded", row.door.name()));
            continue;
        };
        for figure in &FIGURES {
            let (was, is) = ((figure.of)(&old.cost), (figure.of)(&row.cost));
            let leeway = (figure.leeway)(old);
            let (door, name, change) = (row.door.name(), figure.name, is - was);
            let line = format!(
                "{door:<5}  {name:<16}  {was:>7.1} recorded  {is:>7.1} counted  {change:>+7.1}, \
                 {leeway:.1} allowed"
            );
            if change > leeway {
                changes.grown.push(line);
            } else if change < -leeway {
                changes.fallen.push(line);
            }
        }
    }
    changes
}

pub(super) fn read() -> Result<Vec<Row>> {
    TEXT.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

/// Writes these rows in place of those of the same APIs.
pub(super) fn replace(mut rows: Vec<Row>) -> Result<&'static Path> {
    let mut others = read()?;
    others.retain(|old| !rows.iter().any(|row| row.is_of_same(old)));
    rows.extend(others);
    rows.sort_by_key(|row| (!row.has_cgroups, row.door));
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    fs::write(FILE, format!("{HEAD}{lines}")).with_context(|| format!("cannot write {FILE}"))?;
    Ok(Path::new(FILE))
}

fn row(line: &str) -> Result<Row> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[cgroups, door, system_calls, context_switches, allocations] = &fields[..] else {
        bail!("not a row of {FILE}: {line:?}");
    };
    let door = Door::ALL.into_iter().find(|known| known.name() == door);
    let cost = Cost {
        system_calls: system_calls.parse()?,
        context_switches: context_switches.parse()?,
        allocations: allocations.parse()?,
    };
    let door = door.with_context(|| format!("there is no such door in {FILE}: {line:?}"))?;
    Ok(Row { has_cgroups: cgroups == "with", door, cost })
}

impl fmt::Display for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cgroups = if self.has_cgroups { "with" } else { "without" };
        let Cost { system_calls, context_switches, allocations } = self.cost;
        write!(out, "{cgroups:<9}  {:<5}", self.door.name())?;
        write!(out, "{system_calls:>14.1}{context_switches:>18.1}{allocations:>13.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_reads_as_it_is_written() {
        let cost = Cost { system_calls: 128.5, context_switches: 12.0, allocations: 349.1 };
        let written = Row { has_cgroups: false, door: Door::Codex, cost };
        assert_eq!(row(&written.to_string()).expect("a row"), written);
    }

    #[test]
    fn every_door_of_a_server_is_recorded_with_and_without_cgroups() {
        let rows = read().expect("the record can be read");
        for has_cgroups in [true, false] {
            for door in Door::SERVERS {
                let is_same = |row: &&Row| (row.has_cgroups, row.door) == (has_cgroups, door);
                assert_eq!(rows.iter().filter(is_same).count(), 1, "{door:?}, {has_cgroups}");
            }
        }
    }

    fn check(change: impl Fn(&mut Cost), grown: usize, fallen: usize) {
        let cost = Cost { system_calls: 125.0, context_switches: 10.0, allocations: 150.0 };
        let old = Row { has_cgroups: true, door: Door::Http, cost };
        let mut new = old.clone();
        change(&mut new.cost);
        let changes = compare(&[new], &[old]);
        assert_eq!((changes.grown.len(), changes.fallen.len()), (grown, fallen), "{changes:?}");
    }

    #[test]
    fn one_more_call_or_four_more_allocations_are_found() {
        check(|_| {}, 0, 0);
        check(|cost| cost.system_calls += 0.5, 0, 0);
        check(|cost| cost.system_calls += 1.0, 1, 0);
        check(|cost| cost.allocations += 4.0, 1, 0);
        check(|cost| cost.context_switches += 4.0, 0, 0);
        check(|cost| cost.context_switches += 7.0, 1, 0);
    }

    #[test]
    fn a_lower_figure_is_reported() {
        check(|cost| cost.system_calls -= 1.0, 0, 1);
        check(|cost| cost.allocations -= 4.0, 0, 1);
    }

    #[test]
    fn a_door_without_a_record_is_found() {
        let cost = Cost { system_calls: 1.0, context_switches: 1.0, allocations: 1.0 };
        let row = Row { has_cgroups: true, door: Door::Http, cost };
        let other = Row { has_cgroups: false, ..row.clone() };
        assert_eq!(compare(&[row], &[other]).grown.len(), 1);
    }
}
