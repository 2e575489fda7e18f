//! The examples in the README work as written, and the index of the documentation is complete.

use crate::daemon::Home;
use crate::harness::{Finished, LASTBYTE, finish};

const README: &str = include_str!("../../../../README.md");
/// Marks the blocks that are run here.
const MARK: &str = "<!-- run by a test -->\n```sh\n";

#[test]
fn the_tour_works_in_a_new_home() {
    let blocks: Vec<&str> =
        README.split(MARK).skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!blocks.is_empty(), "no block of the README is marked");
    for block in blocks {
        let home = Home::new();
        let folder = std::path::Path::new(&*LASTBYTE).parent().unwrap().display();
        let script = format!("set -eu; PATH={folder}:$PATH; cd \"$HOME\"\n{block}");
        let Finished { code, stdout, stderr } = finish(home.fixture.shell(&script));
        assert_eq!(code, Some(0), "{block}\n{stdout}\n{stderr}");
    }
}

#[test]
fn every_page_is_in_the_index() {
    const INDEX: &str = include_str!("../../../../docs/README.md");
    // Tests run in the folder of their crate.
    for folder in ["", "howto/"] {
        for entry in std::fs::read_dir(format!("../../docs/{folder}")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_listed = INDEX.contains(&format!("]({folder}{name})"));
            assert!(is_listed || !name.ends_with(".md") || name == "README.md", "{folder}{name}");
        }
    }
}

#[test]
fn the_installation_page_names_files_of_this_version() {
    const PAGE: &str = include_str!("../../../../docs/install.md");
    let version = env!("CARGO_PKG_VERSION");
    for part in PAGE.split("dist/lastbyte").skip(1) {
        let file = part.split_whitespace().next().unwrap();
        assert!(file.contains(version), "dist/lastbyte{file} is of another version");
    }
}
