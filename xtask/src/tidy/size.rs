//! `cargo xtask tree-size`: the size of the tree, in numbers that a cleanup should lower.
//!
//! All but the last rows count shipped code: every crate except `testkit` and `xtask`,
//! without tests. Tests are `#[cfg(test)]` items with the files they name, `tests` folders and
//! `*_tests.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::code::{code_of, is_of_a_word, without_comments};
use super::workspace::Workspace;

const SMALL_FILE: usize = 40;
const TOOLS: [&str; 2] = ["testkit", "xtask"];

/// Prints the size of this checkout, or of the one in `--of`, beside that of `--base` if given.
#[expect(clippy::print_stdout, reason = "its result")]
pub(crate) fn tree_size(options: &[String]) -> Result<()> {
    let mut of = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut base = None;
    for option in options.chunks(2) {
        match option {
            [name, folder] if name == "--of" => of = PathBuf::from(folder),
            [name, folder] if name == "--base" => base = Some(Path::new(folder)),
            _ => bail!("usage: cargo xtask tree-size [--of DIR] [--base DIR]"),
        }
    }
    let size = Size::from_files(&Workspace::read_files(&of)?)?;
    let Some(base) = base else {
        print!("{}", size.table());
        print!("\n{}", size.lists());
        return Ok(());
    };
    let base = Size::from_files(&Workspace::read_files(base)?)?;
    print!("{}", size.table_beside(&base));
    Ok(())
}

struct Size {
    /// In the order of the table.
    rows: Vec<(String, usize)>,
    /// Where each name of several types is declared.
    shared_names: BTreeMap<String, Vec<String>>,
    /// The locks of the engine: path, line, text.
    locks: Vec<String>,
}

impl Size {
    fn from_files(workspace: &Workspace) -> Result<Self> {
        let document = |name: &str| {
            workspace.texts.get(name).with_context(|| format!("there is no {name}: not a checkout"))
        };
        let test_files = test_files(workspace);
        let (mut crates, mut files, mut small_files) = (BTreeMap::new(), 0, 0);
        let mut types: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut locks = Vec::new();
        for (path, text) in workspace.texts_ending(".rs") {
            let Some(name) = crate_of(path).filter(|_| !is_test(path, &test_files)) else {
                continue;
            };
            let in_tests = lines_of_tests(text);
            let no_test = |&(line, _): &(usize, &str)| !in_tests.contains(&line);
            let without_comments = without_comments(text);
            let lines = without_comments.lines().enumerate().filter(no_test);
            let count = lines.filter(|(_, line)| !line.trim().is_empty()).count();
            *crates.entry(name).or_insert(0) += count;
            if TOOLS.contains(&name) {
                continue;
            }
            files += 1;
            small_files += usize::from(text.lines().count() < SMALL_FILE);
            for (line, code) in code_of(text).lines().enumerate().filter(no_test) {
                if let Some(name) = declared_type(code) {
                    types.entry(name.to_owned()).or_default().push(path.to_owned());
                }
                if path.starts_with("crates/engine/src/") && declares_lock(code) {
                    locks.push(format!("{path}:{}: {}", line + 1, code.trim()));
                }
            }
        }
        let all_types = types.values().map(Vec::len).sum();
        types.retain(|_, paths| paths.len() > 1);
        let shipped = crates.iter().filter(|(name, _)| !TOOLS.contains(name));
        let mut rows: Vec<(String, usize)> = [
            ("code lines", shipped.map(|(_, count)| count).sum()),
            ("files", files),
            ("files under 40 lines", small_files),
            ("types", all_types),
            ("names of two or more types", types.len()),
            ("glossary terms", terms_in(document("GLOSSARY.md")?)),
            ("locks in the engine", locks.len()),
            ("lines of ARCHITECTURE.md", document("ARCHITECTURE.md")?.lines().count()),
        ]
        .map(|(name, count)| (name.to_owned(), count))
        .into();
        rows.extend(crates.iter().map(|(name, count)| (format!("code lines of {name}"), *count)));
        Ok(Self { rows, shared_names: types, locks })
    }

    fn table(&self) -> String {
        self.rows.iter().map(|(name, count)| format!("{name:<28}{count:>8}\n")).collect()
    }

    fn table_beside(&self, base: &Self) -> String {
        let counts: BTreeMap<&String, usize> = self.rows.iter().map(|(n, c)| (n, *c)).collect();
        let counts_before: BTreeMap<_, _> = base.rows.iter().map(|(n, c)| (n, *c)).collect();
        // A crate may be in only one of them.
        let more = base.rows.iter().filter(|(name, _)| !counts.contains_key(name));
        let names = self.rows.iter().chain(more).map(|(name, _)| name);
        let mut table = format!("{:<28}{:>8}{:>8}{:>8}\n", "", "base", "tree", "change");
        for name in names {
            let before = counts_before.get(name).copied().unwrap_or(0);
            let after = counts.get(name).copied().unwrap_or(0);
            let change = after as i64 - before as i64;
            let percent = match before {
                0 => String::new(),
                before => format!("{:+8.1} %", change as f64 / before as f64 * 100.0),
            };
            table += &format!("{name:<28}{before:>8}{after:>8}{change:>+8}{percent}\n");
        }
        table
    }

    fn lists(&self) -> String {
        let mut lists = String::from("Names of two or more types:\n");
        for (name, paths) in &self.shared_names {
            lists += &format!("  {name}: {}\n", paths.join(", "));
        }
        lists += "\nLocks in the engine:\n";
        lists.extend(self.locks.iter().map(|lock| format!("  {lock}\n")));
        lists
    }
}

/// The folder of the crate that a file belongs to.
fn crate_of(path: &str) -> Option<&str> {
    match path.strip_prefix("crates/") {
        Some(below) => Some(below.split_once('/')?.0),
        None => path.starts_with("xtask/").then_some("xtask"),
    }
}

fn is_test(path: &str, test_files: &BTreeSet<String>) -> bool {
    let in_folder = path.split('/').any(|folder| matches!(folder, "tests" | "tests.rs"));
    in_folder || path.ends_with("_tests.rs") || test_files.contains(path)
}

/// The files that a `#[cfg(test)] mod name;` refers to.
fn test_files(workspace: &Workspace) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for (path, text) in workspace.texts_ending(".rs") {
        let folder = match path.rsplit_once('/') {
            Some((folder, "lib.rs" | "main.rs" | "mod.rs")) => folder,
            _ => path.trim_end_matches(".rs"),
        };
        let in_tests = lines_of_tests(text);
        let code = code_of(text);
        let lines = code.lines().enumerate().filter(|(line, _)| in_tests.contains(line));
        for (_, line) in lines {
            let module = line.trim().strip_prefix("mod ").and_then(|line| line.strip_suffix(';'));
            files.extend(module.map(|name| format!("{folder}/{name}.rs")));
        }
    }
    files
}

/// The lines of items that are compiled only for tests, counted from 0.
fn lines_of_tests(text: &str) -> BTreeSet<usize> {
    let code = code_of(text);
    let mut found = BTreeSet::new();
    let mut lines = code.lines().enumerate();
    while let Some((first, attribute)) = lines.next() {
        if !["#[cfg(test)]", "#[cfg(all(test,"]
            .iter()
            .any(|start| attribute.trim().starts_with(start))
        {
            continue;
        }
        found.insert(first);
        let mut depth = 0;
        for (number, line) in lines.by_ref() {
            found.insert(number);
            let count = |brackets: [char; 2]| line.matches(brackets).count() as i64;
            depth += count(['{', '(']) - count(['}', ')']);
            if depth == 0 && line.trim_end().ends_with(['}', ';', ',']) {
                break;
            }
        }
    }
    found
}

/// The name of the type that a line declares. Associated types do not count.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.split(|c| !is_of_a_word(c)).filter(|word| !word.is_empty());
    let mut word = words.next()?;
    while matches!(word, "pub" | "crate" | "super" | "in" | "unsafe") {
        word = words.next()?;
    }
    match word {
        "struct" | "enum" | "trait" => words.next(),
        "type" if !line.starts_with(' ') => words.next(),
        _ => None,
    }
}

/// Whether a line declares a lock, rather than borrowing or creating one.
fn declares_lock(line: &str) -> bool {
    let owned = |lock: &str| {
        let mut before = line.match_indices(lock).map(|(at, _)| line[..at].chars().next_back());
        before.any(|before| before.is_none_or(|before| !is_of_a_word(before) && before != '&'))
    };
    let is_declaration = !line.contains("fn ") && !line.contains("let ");
    is_declaration && (owned("Mutex<") || owned("RwLock<"))
}

/// The number of table rows and bullets in a glossary.
fn terms_in(glossary: &str) -> usize {
    let is_ruler = |line: &&str| line.starts_with("|--") || line.starts_with("| --");
    let rows = glossary.lines().filter(|line| line.starts_with('|') && !is_ruler(line)).count();
    let heads = glossary.lines().filter(is_ruler).count();
    let bullets = glossary.lines().filter(|line| line.starts_with("- ")).count();
    rows - heads + bullets
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENTS: [(&str, &str); 2] = [
        ("GLOSSARY.md", "| word | meaning |\n|---|---|\n| **a** | b |\n\n- **c**: d\n"),
        ("ARCHITECTURE.md", "1\n2\n3\n"),
    ];

    fn check(files: &[(&str, &str)], row: &str, want: usize) {
        let files: Vec<_> = DOCUMENTS.iter().chain(files).copied().collect();
        let size = Size::from_files(&Workspace::of(&files)).expect("documents are there");
        let found = size.rows.iter().find(|(name, _)| name == row).expect("the row is there");
        assert_eq!(found.1, want, "{row}");
    }

    #[test]
    fn comments_blank_lines_and_tests_do_not_count() {
        let text = "//! A.\n\nfn f() {\n    \"\n{\n\"; // b\n}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n";
        check(&[("crates/sys/src/a.rs", text)], "code lines", 6);
        check(&[("crates/sys/src/a.rs", text), ("crates/cli/src/b.rs", "a\n")], "code lines", 7);
        check(&[("crates/sys/src/a.rs", text)], "code lines of sys", 6);
        check(&[("crates/sys/tests/a.rs", "a\n")], "files", 0);
        check(&[("crates/sys/src/a_tests.rs", "a\n")], "files", 0);
        check(&[("crates/testkit/src/a.rs", "a\n")], "code lines", 0);
    }

    #[test]
    fn a_file_that_only_tests_use_does_not_count() {
        let parent = ("crates/sys/src/lib.rs", "mod b;\n#[cfg(test)]\nmod a;\nmod c;\n");
        check(
            &[parent, ("crates/sys/src/a.rs", "a\n"), ("crates/sys/src/b.rs", "b\n")],
            "files",
            2,
        );
    }

    #[test]
    fn files_under_forty_lines_are_short() {
        let files = [("crates/a/b.rs", &*"a\n".repeat(39)), ("crates/a/c.rs", &*"a\n".repeat(40))];
        check(&files, "files under 40 lines", 1);
    }

    #[test]
    fn types_count_only_where_they_are_declared() {
        let text =
            "pub(crate) struct A;\nenum B {}\ntype C = A;\nimpl D for A {\n    type E = B;\n}\n";
        check(&[("crates/a/src/b.rs", text)], "types", 3);
        check(&[("crates/a/src/b.rs", text)], "names of two or more types", 0);
        let other = ("crates/b/src/b.rs", "trait A {}\nfn f(a: B) {}\n");
        check(&[("crates/a/src/b.rs", text), other], "names of two or more types", 1);
    }

    #[test]
    fn locks_count_only_where_they_are_declared() {
        let text = "use std::sync::Mutex;\na: Mutex<u8>,\nstatic B: RwLock<u8> = RwLock::new(0);\n\
                    fn c(d: Mutex<u8>) {}\n    e: &Mutex<u8>,\nf: MutexGuard<u8>,\n";
        check(&[("crates/engine/src/a.rs", text)], "locks in the engine", 2);
        check(&[("crates/cli/src/a.rs", text)], "locks in the engine", 0);
    }

    #[test]
    fn documents_are_counted() {
        check(&[], "glossary terms", 2);
        check(&[], "lines of ARCHITECTURE.md", 3);
    }

    #[test]
    fn a_row_that_one_tree_lacks_is_shown() {
        let tree = |path| {
            let files: Vec<_> = DOCUMENTS.into_iter().chain([(path, "a\n")]).collect();
            Size::from_files(&Workspace::of(&files)).expect("documents are there")
        };
        let table = tree("crates/a/src/x.rs").table_beside(&tree("crates/b/src/x.rs"));
        assert!(
            table.contains("code lines of a                    0       1      +1\n"),
            "{table}"
        );
        assert!(table.contains("code lines of b                    1       0      -1"), "{table}");
    }
}
