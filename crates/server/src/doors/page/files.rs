//! The list of files; a test compares it with the folder `web`.

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// One file of the page.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) contents: &'static [u8],
}

/// The file of this name below `web`, at `/page/NAME`.
macro_rules! file {
    ($name:literal, $kind:expr) => {
        File {
            path: concat!("/page/", $name),
            kind: $kind,
            contents: include_bytes!(concat!("../../../web/", $name)),
        }
    };
}

pub(super) const FILES: &[File] = &[
    File {
        path: "/",
        kind: "text/html; charset=utf-8",
        contents: include_bytes!("../../../web/index.html"),
    },
    file!("actions.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("connection.js", SCRIPT),
    file!("csp_styles.js", SCRIPT),
    file!("details.js", SCRIPT),
    file!("dialog.js", SCRIPT),
    file!("hand_over.js", SCRIPT),
    file!("help.js", SCRIPT),
    file!("html.js", SCRIPT),
    file!("icon.svg", "image/svg+xml"),
    file!("list.js", SCRIPT),
    file!("live.js", SCRIPT),
    file!("log.css", STYLE),
    file!("log.js", SCRIPT),
    file!("log_model.js", SCRIPT),
    file!("main.js", SCRIPT),
    file!("process.js", SCRIPT),
    file!("search_model.js", SCRIPT),
    file!("sgr.js", SCRIPT),
    file!("style.css", STYLE),
    file!("terminal.js", SCRIPT),
    file!("theme.js", SCRIPT),
    file!("vendor/addon-fit.js", SCRIPT),
    file!("vendor/hooks.js", SCRIPT),
    file!("vendor/htm.js", SCRIPT),
    file!("vendor/preact.js", SCRIPT),
    file!("vendor/xterm.css", STYLE),
    file!("vendor/xterm.js", SCRIPT),
    file!("words.js", SCRIPT),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_list_has_every_file_of_the_folder() {
        let web = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/web"));
        let mut found = vec![];
        for (folder, prefix) in [(web.to_owned(), ""), (web.join("vendor"), "vendor/")] {
            for entry in std::fs::read_dir(folder).unwrap() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                if name.contains('.') && !name.ends_with(".md") {
                    found.push(format!("/page/{prefix}{name}"));
                }
            }
        }
        found.sort();
        let index = "/page/index.html";
        let listed = FILES.iter().map(|file| if file.path == "/" { index } else { file.path });
        let mut listed: Vec<_> = listed.collect();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
