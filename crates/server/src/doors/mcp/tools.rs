//! The tools: what models are told of each, and which arguments it takes.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::args::Argument;
use crate::listen::Needs;

/// One of the tools, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolName {
    ExecCommand,
    WriteStdin,
    Wait,
    ReadOutput,
    SearchOutput,
    ListProcesses,
    StopProcess,
}

/// The longest that a call waits: clients give up after 60 s.
pub(super) const LONGEST_WAIT_MS: u64 = 50_000;
/// How long `exec_command` waits unless it is told.
pub(super) const USUAL_YIELD_MS: u64 = 30_000;
/// How long `write_stdin` waits for an answer to what was written.
pub(super) const USUAL_WRITE_YIELD_MS: u64 = 2_000;

const ID: Argument = ("process_id", &["session_id", "task_id", "shell_id", "pid", "id"]);
const MAX_TOKENS: Argument = ("max_output_tokens", &[]);
const YIELD: Argument = ("yield_time_ms", &["delay_ms"]);

impl ToolName {
    pub(super) const ALL: [Self; 7] = [
        Self::ExecCommand,
        Self::WriteStdin,
        Self::Wait,
        Self::ReadOutput,
        Self::SearchOutput,
        Self::ListProcesses,
        Self::StopProcess,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::ExecCommand => "exec_command",
            Self::WriteStdin => "write_stdin",
            Self::Wait => "wait",
            Self::ReadOutput => "read_output",
            Self::SearchOutput => "search_output",
            Self::ListProcesses => "list_processes",
            Self::StopProcess => "stop_process",
        }
    }

    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.as_str() == name)
    }

    pub(super) fn needs(self) -> Needs {
        match self {
            Self::ExecCommand | Self::WriteStdin | Self::StopProcess => Needs::Change,
            Self::Wait | Self::ReadOutput | Self::SearchOutput | Self::ListProcesses => Needs::Read,
        }
    }

    /// The arguments, with the names that other tools have for them.
    pub(super) fn arguments(self) -> &'static [Argument] {
        match self {
            Self::ExecCommand => &[
                ("command", &["cmd"]),
                ("workdir", &["dir_path", "cwd", "working_directory"]),
                ("tty", &[]),
                YIELD,
                ("timeout", &["timeout_ms"]),
                ("on_timeout", &[]),
                ("idle_timeout", &["idle_timeout_ms"]),
                ("run_in_background", &["is_background", "background"]),
                ("stdin", &[]),
                ("env", &[]),
                ("name", &[]),
                ("key", &[]),
                ("sandbox", &[]),
                MAX_TOKENS,
                ("shell", &[]),
                ("login", &[]),
                // What it is for: said to people, not to us.
                ("description", &["justification"]),
            ],
            Self::WriteStdin => &[
                ID,
                ("chars", &["input", "text", "data"]),
                ("keys", &["key"]),
                ("eof", &["close_stdin"]),
                ("hand_over", &[]),
                YIELD,
                ("offset", &["cursor"]),
                MAX_TOKENS,
            ],
            Self::Wait => &[
                ("process_ids", &["process_id", "session_id", "task_id", "shell_id", "pid", "ids"]),
                ("until", &[]),
                ("pattern", &["regex"]),
                ("port", &[]),
                ("silence_ms", &[]),
                ("mode", &[]),
                ("timeout", &["timeout_ms", "yield_time_ms"]),
                ("offset", &["cursor"]),
                MAX_TOKENS,
            ],
            Self::ReadOutput => &[
                ID,
                ("offset", &["cursor", "from"]),
                ("length", &[]),
                ("tail", &["lines"]),
                ("view", &[]),
                MAX_TOKENS,
            ],
            Self::SearchOutput => &[
                ID,
                ("pattern", &["regex", "query"]),
                ("context", &[]),
                ("offset", &["cursor", "from"]),
                MAX_TOKENS,
            ],
            Self::ListProcesses => &[MAX_TOKENS],
            Self::StopProcess => &[ID, ("signal", &[]), ("grace_ms", &[])],
        }
    }

    /// As a client lists it.
    pub(super) fn tool(self) -> Tool {
        let Value::Object(properties) = self.properties() else { unreachable!("it is an object") };
        let mut schema = JsonObject::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), Value::Object(properties));
        schema.insert("required".into(), json!(self.required()));
        let reads = self.needs() == Needs::Read;
        let hints = ToolAnnotations::with_title(self.title())
            .read_only(reads)
            .destructive(!reads && self != Self::WriteStdin)
            .idempotent(reads || self == Self::StopProcess)
            .open_world(self == Self::ExecCommand || self == Self::WriteStdin);
        Tool::new(self.as_str(), self.description(), Arc::new(schema))
            .with_title(self.title())
            .with_annotations(hints)
    }

    fn title(self) -> &'static str {
        match self {
            Self::ExecCommand => "Run a command",
            Self::WriteStdin => "Write to a process",
            Self::Wait => "Wait for processes",
            Self::ReadOutput => "Read output",
            Self::SearchOutput => "Search output",
            Self::ListProcesses => "List processes",
            Self::StopProcess => "Stop a process",
        }
    }

    fn required(self) -> &'static [&'static str] {
        match self {
            Self::ExecCommand => &["command"],
            Self::WriteStdin | Self::ReadOutput | Self::StopProcess => &["process_id"],
            Self::Wait => &["process_ids"],
            Self::SearchOutput => &["process_id", "pattern"],
            Self::ListProcesses => &[],
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::ExecCommand => {
                "Runs a command and waits until it has ended, at most yield_time_ms (default 30000, at \
                 most 50000). Answers with how it ended, its exit code and its output. A command that \
                 is still running then keeps running: call wait with its process_id. Ask yourself: do \
                 I need the result before continuing? If not (a server, a watcher), set \
                 run_in_background. Output is kept; what an answer folds can be read with read_output \
                 or searched with search_output. For a program that asks questions, set tty: it \
                 answers as soon as the program waits for input, which write_stdin gives it."
            }
            Self::WriteStdin => {
                "Writes to the standard input of a process that was started with tty or stdin=open, \
                 waits until it has answered and shows the new output. The text is written as it is: \
                 end a line with \\n, or type keys by name: C-c, Enter, Up. Without both it only shows \
                 the output that comes. For a password, never ask for it: set hand_over, which answers \
                 with a link for the person."
            }
            Self::Wait => {
                "Waits until processes have ended, or until one writes a line that matches a pattern, \
                 listens on a port, is silent, or waits for input (until=needs_input), or \
                 until a person is done with a keyboard (until=hand_over). Waits at most 50 s in one call: if it answers that \
                 the process is still running, call wait again."
            }
            Self::ReadOutput => {
                "Reads the output of a process, also after it has ended: without offset its beginning \
                 and its end, with offset from that byte on, with tail its last lines. view=text (the \
                 default) is what a person sees; view=raw is every byte as it is, in base64 if it is \
                 not UTF-8; view=screen is the screen of a program that draws one (vim, htop), at offset \
                 or at its end."
            }
            Self::SearchOutput => {
                "Searches the output of a process for a regular expression and shows the matching \
                 lines with their byte offsets. Better than running the command again with grep."
            }
            Self::ListProcesses => {
                "Lists the processes of this session, running ones first: id, command, state, \
                 directory, age and how much output each has. Call it when you have lost track, for \
                 instance after your context was compacted."
            }
            Self::StopProcess => {
                "Stops a process and everything it started, and answers with what is gone and what is \
                 left. Sends TERM, then KILL after grace_ms."
            }
        }
    }

    fn properties(self) -> Value {
        let id = json!({ "type": "string", "description": "Id or name of the process" });
        let max_tokens = json!({
            "type": "integer",
            "description": "Longest answer in tokens (default 8000, 400 to 20000)",
        });
        let offset = |what: &str| json!({ "type": "integer", "minimum": 0, "description": what });
        match self {
            Self::ExecCommand => exec_properties(max_tokens),
            Self::WriteStdin => json!({
                "process_id": id,
                "chars": { "type": "string", "description": "Text to write" },
                "keys": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Keys to type after it: C-c, Enter, Up, Escape, F1, …",
                },
                "eof": { "type": "boolean", "description": "Close standard input afterwards" },
                "hand_over": {
                    "type": "boolean",
                    "description": "Let a person type instead: a password, or a choice that is theirs",
                },
                "yield_time_ms": {
                    "type": "integer",
                    "description": "How long to wait for an answer (default 2000, at most 50000)",
                },
                "offset": offset("Show output from this byte on (default: what comes after the write)"),
                "max_output_tokens": max_tokens,
            }),
            Self::Wait => json!({
                "process_ids": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "Ids or names of the processes",
                },
                "until": {
                    "type": "string",
                    "enum": ["exit", "pattern", "port", "silence", "needs_input", "hand_over"],
                    "description": "What to wait for (default exit)",
                },
                "pattern": {
                    "type": "string",
                    "description": "until=pattern: regular expression that a line of the output matches",
                },
                "port": { "type": "integer", "description": "until=port: TCP port it listens on" },
                "silence_ms": {
                    "type": "integer",
                    "description": "until=silence: it has written nothing for this long (default 2000)",
                },
                "mode": {
                    "type": "string",
                    "enum": ["all", "any"],
                    "description": "Wait for all processes (default) or for the first",
                },
                "timeout": {
                    "type": "integer",
                    "description": "Longest wait in milliseconds (default and most: 50000)",
                },
                "offset": offset("One process: show its output from this byte on"),
                "max_output_tokens": max_tokens,
            }),
            Self::ReadOutput => json!({
                "process_id": id,
                "offset": offset("First byte to show"),
                "length": offset("How many bytes to show, from offset"),
                "tail": { "type": "integer", "description": "Show the last lines, this many" },
                "view": { "type": "string", "enum": ["text", "raw", "screen"] },
                "max_output_tokens": max_tokens,
            }),
            Self::SearchOutput => json!({
                "process_id": id,
                "pattern": { "type": "string", "description": "Regular expression, matched line by line" },
                "context": { "type": "integer", "description": "Lines to show around each match" },
                "offset": offset("Byte to start at (default 0)"),
                "max_output_tokens": max_tokens,
            }),
            Self::ListProcesses => json!({ "max_output_tokens": max_tokens }),
            Self::StopProcess => json!({
                "process_id": id,
                "signal": { "type": "string", "description": "First signal (default TERM)" },
                "grace_ms": {
                    "type": "integer",
                    "description": "Time from that signal to KILL (default 5000, at most 40000)",
                },
            }),
        }
    }
}

fn exec_properties(max_tokens: Value) -> Value {
    json!({
        "command": { "type": "string", "description": "Shell command" },
        "workdir": { "type": "string", "description": "Directory to run it in" },
        "tty": { "type": "boolean", "description": "Run it on a terminal, for programs that ask" },
        "yield_time_ms": {
            "type": "integer",
            "description": "How long to wait for its end (default 30000, or its timeout; at most 50000)",
        },
        "timeout": {
            "type": "integer",
            "description": "Milliseconds after which it is stopped (default: none)",
        },
        "on_timeout": {
            "type": "string",
            "enum": ["kill", "background"],
            "description": "What the timeout does: stop it (default), or only end the waiting",
        },
        "idle_timeout": {
            "type": "integer",
            "description": "Milliseconds without output after which it is stopped",
        },
        "run_in_background": {
            "type": "boolean",
            "description": "Answer at once; for what you do not need before continuing",
        },
        "stdin": {
            "type": "string",
            "enum": ["closed", "open"],
            "description": "Keep standard input open for write_stdin without a terminal (default closed)",
        },
        "env": {
            "type": "object",
            "additionalProperties": { "type": ["string", "null"] },
            "description": "Variables to set; null removes one",
        },
        "name": { "type": "string", "description": "Name for the process, instead of its id" },
        "key": {
            "type": "string",
            "description": "A second call with the same key finds the same process",
        },
        "sandbox": {
            "type": ["string", "object"],
            "description": "What it may do: full_access, read_only, workspace_write",
        },
        "max_output_tokens": max_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_argument_is_taken_and_every_required_one_is_published() {
        for tool in ToolName::ALL {
            let Value::Object(published) = tool.properties() else { panic!("no object") };
            for name in published.keys() {
                assert!(tool.arguments().iter().any(|(main, _)| main == name), "{tool:?} {name}");
            }
            for name in tool.required() {
                assert!(published.contains_key(*name), "{tool:?} {name}");
            }
        }
    }

    #[test]
    fn no_two_arguments_of_a_tool_share_a_name() {
        for tool in ToolName::ALL {
            let names = tool.arguments().iter();
            let mut names: Vec<_> =
                names.flat_map(|(main, others)| others.iter().chain([main])).collect();
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all, "{tool:?}");
        }
    }

    #[test]
    fn only_tools_that_change_nothing_say_so() {
        let reading = ToolName::ALL.into_iter().filter(|tool| tool.needs() == Needs::Read);
        let names: Vec<_> = reading.map(ToolName::as_str).collect();
        assert_eq!(names, ["wait", "read_output", "search_output", "list_processes"]);
    }
}
