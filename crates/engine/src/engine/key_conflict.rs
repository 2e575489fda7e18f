//! What differs between a launch and the one that has used its key: never a value of a variable.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;

use lastbyte_output::mask::Secret;

use super::process_map::Keyed;
use crate::journal::{Field, FieldHashes};
use crate::launch::{Launch, Limits, Resources, Spec};

/// How two launches with the same key differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    Known {
        fields: Vec<Field>,
        /// The variables that only one of them sets or removes, by name.
        variables: Vec<OsString>,
    },
    /// An earlier server started it. All that it wrote down is equal, so it is one of these.
    OneOf(Vec<Field>),
}

/// How many variables a message names.
const MOST_NAMED: usize = 8;

/// The fields that are not written down, or not as they were asked for.
const NOT_WRITTEN: [Field; 4] = [Field::Cwd, Field::Env, Field::Stdin, Field::Drain];

/// The fields that an earlier version did not write down either.
const LIMITS: [Field; 2] = [Field::Timeouts, Field::Quota];

impl Keyed {
    /// How this launch differs from the one that has the key.
    pub(super) fn difference(&self, launch: &Launch, fields: &FieldHashes) -> Difference {
        // It has no spec until it has started, and none if that failed.
        let started = self.outcome.borrow().clone().and_then(Result::ok);
        let spec = started.as_ref().map(|started| started.process.spec());
        match (&self.fields, spec) {
            (Some(theirs), spec) => Difference::Known {
                fields: fields.differing(theirs),
                variables: spec.map(|spec| variables(launch, spec)).unwrap_or_default(),
            },
            (None, Some(spec)) => Difference::by_spec(launch, spec),
            (None, None) => Difference::OneOf([&NOT_WRITTEN[..], &LIMITS].concat()),
        }
    }
}

impl Difference {
    /// From one that an earlier engine has started.
    fn by_spec(launch: &Launch, spec: &Spec) -> Self {
        let (variables, limits) = (variables(launch, spec), launch.limits());
        let timeouts = |limits: Limits| (limits.timeouts, limits.on_timeout);
        let quota = |limits: Limits| (limits.quota, limits.on_quota);
        // With the server's own limits; so a launch that asks for none may not differ.
        let theirs = spec.resources.as_ref().map(|limited| limited.limits).unwrap_or_default();
        let none = Resources::default();
        let differs = [
            (Field::Command, launch.program != spec.program),
            (Field::Cwd, launch.cwd.as_ref().is_some_and(|cwd| *cwd != spec.cwd)),
            (Field::Env, !variables.is_empty()),
            (Field::Streams, launch.streams != spec.streams),
            (
                Field::Timeouts,
                launch.on_disconnect != spec.on_disconnect
                    || spec.limits.is_some_and(|theirs| timeouts(theirs) != timeouts(limits)),
            ),
            (Field::Stop, launch.stop != spec.stop),
            (Field::Quota, spec.limits.is_some_and(|theirs| quota(theirs) != quota(limits))),
            (Field::Sandbox, launch.sandbox != spec.sandbox),
            (Field::Session, launch.session != spec.session),
            (Field::Labels, launch.labels != spec.labels),
            (Field::Name, launch.name != spec.name),
            (Field::Resources, launch.resources != none && launch.resources != theirs),
            (Field::Secrets, !launch.secrets.iter().map(Secret::name).eq(&spec.secret_names)),
        ];
        let fields: Vec<Field> =
            differs.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect();
        if !fields.is_empty() {
            return Self::Known { fields, variables };
        }
        let limits: &[Field] = if spec.limits.is_none() { &LIMITS } else { &[] };
        let resources: &[Field] = if theirs == none { &[] } else { &[Field::Resources] };
        let secrets: &[Field] = if spec.secret_names.is_empty() { &[] } else { &[Field::Secrets] };
        Self::OneOf([&NOT_WRITTEN, limits, resources, secrets].concat())
    }
}

fn variables(launch: &Launch, spec: &Spec) -> Vec<OsString> {
    let ours: BTreeSet<&OsString> = launch.env_names().collect();
    let theirs: BTreeSet<&OsString> = spec.env_names.iter().collect();
    ours.symmetric_difference(&theirs).copied().cloned().collect()
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known { fields, variables } => {
                let name = |field: &Field| match (field, variables.is_empty()) {
                    (Field::Env, false) => format!("{field} ({})", list_of(variables)),
                    (Field::Env, true) => format!("{field} (values)"),
                    (field, _) => field.to_string(),
                };
                let fields: Vec<String> = fields.iter().map(name).collect();
                write!(out, "{}", joined(&fields, "and"))
            }
            Self::OneOf(fields) => {
                let fields: Vec<String> = fields.iter().map(ToString::to_string).collect();
                write!(out, "{} (after a restart it is not known which)", joined(&fields, "or"))
            }
        }
    }
}

fn list_of(variables: &[OsString]) -> String {
    let named = variables.iter().take(MOST_NAMED).map(|name| name.to_string_lossy().into_owned());
    let more = variables.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

fn joined(words: &[String], before_last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} {before_last} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_told_in_words_and_names_few_variables() {
        let known = |fields: &[Field], variables: usize| {
            let variables = (0..variables).map(|number| format!("V{number}").into()).collect();
            Difference::Known { fields: fields.into(), variables }.to_string()
        };
        assert_eq!(known(&[Field::Command], 0), "command");
        assert_eq!(known(&[Field::Cwd, Field::Env], 0), "working directory and variables (values)");
        let some = known(&[Field::Command, Field::Env, Field::Name], 2);
        assert_eq!(some, "command, variables (V0, V1) and name");
        let many = known(&[Field::Env], 10);
        assert_eq!(many, "variables (V0, V1, V2, V3, V4, V5, V6, V7, 2 more)");
    }
}
