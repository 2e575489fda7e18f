//! The examples in the README work as written.

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
