//! The commands in docs/coming-from.md work as written.

use std::path::Path;

use crate::daemon::Home;
use crate::harness::{Finished, LASTBYTE, finish};

const PAGE: &str = include_str!("../../../../docs/coming-from.md");

/// What needs a terminal or a sandbox that not every machine has, never ends by itself, or stands
/// for others.
const NOT_RUN: [&str; 4] = [
    "lastbyte events",
    "lastbyte attach work",
    "lastbyte write ID --line y",
    "lastbyte run --sandbox read-only 'cat /etc/hostname'",
];

/// A wait has the code of the command that ended; of several, 1 if one failed.
const ENDS_WITH: [(&str, i32); 2] =
    [("lastbyte wait web", 143), ("lastbyte wait --session build", 1)];

/// The first code of the second column of each row.
fn commands(section: &str) -> Vec<String> {
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let second = rows.map(|row| row.replace("\\|", "\u{0}"));
    let second = second.filter_map(|row| Some(row.split('|').nth(2)?.trim().to_owned()));
    let code =
        second.filter_map(|cell| Some(cell.strip_prefix('`')?.split('`').next()?.to_owned()));
    code.map(|code| code.replace('\u{0}', "|")).collect()
}

#[test]
fn the_commands_of_each_table_work_in_their_order() {
    let sections: Vec<&str> = PAGE.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), 5);
    for section in sections {
        let (home, name) = (Home::new(), section.lines().next().unwrap());
        let folder = Path::new(&*LASTBYTE).parent().unwrap().display();
        let commands = commands(section);
        assert!(commands.len() > 5, "{name}: {commands:?}");
        for command in commands.iter().filter(|command| !NOT_RUN.contains(&command.as_str())) {
            let mut bash = home.fixture.program("bash");
            bash.args(["-c", &format!("PATH={folder}:$PATH; cd \"$HOME\"; {command}")]);
            let Finished { code, stdout, stderr } = finish(bash);
            let want = ENDS_WITH.iter().find(|(other, _)| other == command);
            let want = want.map_or(0, |(_, code)| *code);
            assert_eq!(code, Some(want), "{name}: {command}\n{stdout}\n{stderr}");
        }
    }
}
