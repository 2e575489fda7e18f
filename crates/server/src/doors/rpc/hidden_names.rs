//! Variables that are for Codex itself and never passed on to a command.

const HIDDEN: [&str; 6] = [
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "NODE_REPL_AUTH_TOKEN",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
];

pub(crate) fn is_hidden(name: &str) -> bool {
    HIDDEN.iter().any(|hidden| hidden.eq_ignore_ascii_case(name))
}
