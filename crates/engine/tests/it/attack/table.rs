//! The outcomes as a table, kept in docs/security.md.

use std::fs;
use std::path::Path;

use super::Outcome;
use crate::enforcements::enforcements_here;

const BEGIN: &str = "<!-- attempts: begin -->\n";
const END: &str = "<!-- attempts: end -->\n";
/// If this variable is set, the test writes the table instead of comparing it.
const BLESS: &str = "LASTBYTE_BLESS";

/// The columns of the page, which do not depend on the user that runs the test.
const COLUMNS: [&str; 11] = [
    "full access",
    "read-only, mounts",
    "read-only, user mounts",
    "read-only, landlock",
    "workspace-write, mounts",
    "workspace-write, user mounts",
    "workspace-write, landlock",
    "read-only with network, mounts",
    "read-only with network, user mounts",
    "workspace-write with network, mounts",
    "workspace-write with network, user mounts",
];

pub struct Table {
    columns: Vec<String>,
    /// Group and name of an attempt, and its result in each column.
    rows: Vec<(String, String, Vec<String>)>,
}

impl Table {
    pub fn new() -> Self {
        Self { columns: vec![], rows: vec![] }
    }

    pub fn add(&mut self, column: &str, outcomes: &[Outcome]) {
        if self.columns.is_empty() {
            let row = |one: &Outcome| (one.group.clone(), one.name.clone(), vec![]);
            self.rows = outcomes.iter().map(row).collect();
        }
        self.columns.push(column.to_owned());
        for (row, outcome) in self.rows.iter_mut().zip(outcomes) {
            assert_eq!((&row.0, &row.1), (&outcome.group, &outcome.name));
            row.2.push(outcome.result.clone());
        }
    }

    /// Fails if the page differs or lacks a column. Error numbers depend on the kernel, so they are
    /// compared only under the conditions of the page: by user 0, with all three enforcements, on
    /// the release that it names.
    pub fn compare(&self) {
        let all = enforcements_here().len() == 3;
        assert!(!all || self.columns == COLUMNS, "{:?}", self.columns);
        // Tests run in the folder of their crate.
        let page = Path::new("../../docs/security.md");
        let text = fs::read_to_string(page).unwrap();
        let (head, rest) = text.split_once(BEGIN).unwrap();
        let (kept, tail) = rest.split_once(END).unwrap();
        let ours = format!("\nOn Linux {}, the server as user 0:\n\n{}\n", release(), self.text());
        if std::env::var_os(BLESS).is_some() {
            fs::write(page, format!("{head}{BEGIN}{ours}{END}{tail}")).unwrap();
        } else if all && is_user_0() && kept.contains(&format!("Linux {},", release())) {
            assert_eq!(kept, ours, "docs/security.md is out of date: run with {BLESS}=1");
        } else {
            let named =
                |row: &(String, String, Vec<String>)| kept.contains(&format!("| {} |", row.1));
            assert!(self.rows.iter().all(named), "docs/security.md lacks an attempt");
            let listed = |(number, name): (usize, &&str)| {
                kept.contains(&format!("\n{}. {name}\n", number + 1))
            };
            assert!(COLUMNS.iter().enumerate().all(listed), "docs/security.md lacks a column");
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (number, column) in self.columns.iter().enumerate() {
            text += &format!("{}. {column}\n", number + 1);
        }
        text += "\n| what is tried | attempt |";
        (1..=self.columns.len()).for_each(|number| text += &format!(" {number} |"));
        text += "\n|---|---|";
        text += &"---|".repeat(self.columns.len());
        let mut last = "";
        for (group, name, results) in &self.rows {
            let group_once = if group == last { "" } else { group };
            last = group;
            text += &format!("\n| {group_once} | {name} | {} |", results.join(" | "));
        }
        text + "\n"
    }
}

fn is_user_0() -> bool {
    rustix::process::geteuid().is_root()
}

/// Without the suffix of a distribution.
fn release() -> String {
    let release = lastbyte_sys::probe::kernel();
    release.split('.').take(2).collect::<Vec<_>>().join(".")
}
