//! The report of a soak: a table, charts, and whether anything grew.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::sample::Sample;
use crate::chart::Chart;
use crate::kill_loop::{Counts, Tally};

/// A measured quantity: its file, its title, its value in the unit of the title, and how much of it may be
/// more in the last third of a run than in the middle one.
type Quantity = (&'static str, &'static str, fn(&Sample) -> f64, f64);

const QUANTITIES: [Quantity; 4] = [
    ("memory", "Memory (MB)", |sample| sample.memory as f64 / 1e6, 8.0),
    (
        "descriptors",
        "Descriptors, besides log files kept open",
        |sample| sample.descriptors as f64,
        20.0,
    ),
    ("disk", "Disk space of the state directory (MB)", |sample| sample.disk as f64 / 1e6, 32.0),
    ("processes", "Commands and their children", |sample| sample.processes as f64, 10.0),
];
const SERVERS: [&str; 2] = ["server whose worker is killed", "server whose disk fills"];
/// The growth of a shorter run says nothing.
const LEAST: usize = 60;

pub(super) struct Report {
    folder: PathBuf,
    minutes: Vec<f64>,
    /// Of each server.
    samples: Vec<(&'static str, Vec<Sample>)>,
    lines: Vec<String>,
}

impl Report {
    pub(super) fn new(folder: &Path, has_small_disk: bool) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let servers = SERVERS.into_iter().take(1 + usize::from(has_small_disk));
        Ok(Self {
            folder: folder.to_owned(),
            minutes: Vec::new(),
            samples: servers.map(|name| (name, Vec::new())).collect(),
            lines: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, at: Duration, samples: [Option<Sample>; 2], counts: &Counts) {
        self.minutes.push(at.as_secs_f64() / 60.0);
        let mut line = format!("| {:.1} |", at.as_secs_f64() / 60.0);
        for ((_, all), sample) in self.samples.iter_mut().zip(samples.into_iter().flatten()) {
            all.push(sample);
            for (_, _, value, _) in QUANTITIES {
                _ = write!(line, " {:.0} |", value(&sample));
            }
        }
        let processes: u64 = counts.processes.values().sum();
        let (bytes, kills, wrong) = (counts.bytes >> 20, counts.kills, counts.wrong.len());
        _ = write!(line, " {processes} | {bytes} | {kills} | {wrong} |");
        self.lines.push(line);
    }

    pub(super) fn last_line(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }

    /// Compares the last third with the middle one: the first has what comes once.
    pub(super) fn check_growth(&self, tally: &Tally) {
        if self.minutes.len() < LEAST {
            return;
        }
        for (server, samples) in &self.samples {
            let third = samples.len() / 3;
            for (_, title, value, tolerated) in QUANTITIES {
                let middle = median(samples[third..2 * third].iter().map(value));
                let last = median(samples[2 * third..].iter().map(value));
                if last > middle * 1.1 + tolerated {
                    let what =
                        format!("{title} grew from {middle:.0} to {last:.0} in a third of the run");
                    tally.wrong_at(server, &what);
                }
            }
        }
    }

    pub(super) fn write(&self, counts: &Counts, took: Duration) -> Result<()> {
        let mut text = format!(
            "# Soak of {:.0} minutes\n\n{} worker kills, {} wrong.\n\n",
            took.as_secs_f64() / 60.0,
            counts.kills,
            counts.wrong.len()
        );
        for (kind, count) in &counts.processes {
            _ = writeln!(text, "- {kind}: {count}");
        }
        for (name, title, value, _) in QUANTITIES {
            let lines: Vec<(&str, Vec<f64>)> = self
                .samples
                .iter()
                .map(|(server, samples)| (*server, samples.iter().map(value).collect()))
                .collect();
            let svg = Chart::over_minutes(title, &lines, &self.minutes).to_svg();
            fs::write(self.folder.join(format!("{name}.svg")), svg)?;
            _ = writeln!(text, "\n![{title}]({name}.svg)");
        }
        for wrong in &counts.wrong {
            _ = writeln!(text, "- wrong: {wrong}");
        }
        text += "\n| minute |";
        let columns = QUANTITIES.map(|(name, ..)| name).join(" | ");
        self.samples.iter().for_each(|_| _ = write!(text, " {columns} |"));
        text += " jobs | MiB | kills | wrong |\n|";
        text += &"---|".repeat(5 + 4 * self.samples.len());
        text = text + "\n" + &self.lines.join("\n") + "\n";
        Ok(fs::write(self.folder.join("report.md"), text)?)
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
