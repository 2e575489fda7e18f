use crate::harness::{Fixture, finish};

#[test]
fn every_command_has_a_page_with_all_its_options() {
    let fixture = Fixture::new();
    let folder = fixture.home.path().join("share/man1");
    let finished = finish(fixture.lastbyte(&["man", folder.to_str().unwrap()]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    let all = finish(fixture.lastbyte(&["cli-doc"])).stdout;
    for part in all.split("\n## lastbyte").skip(1) {
        let (name, help) = part.split_once('\n').unwrap();
        let file = folder.join(format!("lastbyte{}.1", name.replace(' ', "-")));
        let page = std::fs::read_to_string(&file).unwrap_or_else(|_| panic!("{file:?}"));
        let options = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
        for option in options.filter_map(|option| option.split([' ', ',']).next()) {
            let escaped = format!("\\-\\-{}", option.replace('-', "\\-"));
            assert!(page.contains(&escaped), "{file:?} has no --{option}");
        }
    }
    assert!(!folder.join("lastbyte-cli-doc.1").exists(), "what is hidden has none");
}

#[test]
fn a_file_is_not_taken_for_a_directory() {
    let finished = finish(Fixture::new().lastbyte(&["man", "/etc/passwd"]));
    let want = "lastbyte: cannot write manual pages to /etc/passwd: it is not a directory\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(125), want));
}
