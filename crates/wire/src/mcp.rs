//! What `lastbyte mcp` adds to the messages that it passes on to `/mcp`.

/// The session of the request, percent-encoded. A token of a session wins over it.
pub const SESSION: &str = "lastbyte-session";
/// A name of this call that is the same when it is sent again: what it starts is started once.
pub const CALL: &str = "lastbyte-call";
/// The message comes from standard input: what HTTP requires beside it follows from it.
pub const STDIO: &str = "lastbyte-stdio";
/// In `_meta` of a tool call: `cwd` and `env` of the client, for the command that it starts.
pub const LAUNCH: &str = "lastbyte/launch";
/// The tool that starts a command.
pub const STARTING_TOOL: &str = "exec_command";
/// The tool whose call is not sent again when its connection broke.
pub const UNREPEATABLE_TOOL: &str = "write_stdin";
