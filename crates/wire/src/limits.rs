//! What a command and everything it starts may use.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Limits of a command. One that is absent is the server's default, if it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Memory of the command and everything it starts together, in bytes. Past it they are killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1048576))]
    pub memory_bytes: Option<u64>,
    /// Processors, like 1.5. The command waits for its turn when it has used its part. Only the kernel
    /// can enforce this, by a cgroup; without one the command is not started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<Cpus>,
    /// Processes and threads together. The kernel refuses to start more; where it cannot, the command
    /// is killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub pids: Option<u64>,
    /// Descriptors that each process may have open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub open_files: Option<u64>,
    /// The size of a file that a process may write, in bytes. Past it the process gets SIGXFSZ.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub file_size_bytes: Option<u64>,
    /// Processor time. The kernel holds each process to it, in whole seconds rounded up; the server
    /// holds all of them together to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub cpu_time_ms: Option<u64>,
    /// Start the command only if the kernel enforces every limit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// A number of processors, in thousandths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus {
    pub thousandths: u32,
}

impl Cpus {
    /// `None` if it is less than a hundredth or more than a million.
    pub fn new(cpus: f64) -> Option<Self> {
        let thousandths = (cpus * 1000.0).round();
        // In range, so nothing is cut off.
        (10.0..=1e9).contains(&thousandths).then_some(Self { thousandths: thousandths as u32 })
    }

    pub fn count(self) -> f64 {
        f64::from(self.thousandths) / 1000.0
    }
}

impl Serialize for Cpus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.count().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Cpus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let cpus = f64::deserialize(from)?;
        Self::new(cpus).ok_or_else(|| de::Error::custom("`cpus` must be from 0.01 to 1000000"))
    }
}

impl JsonSchema for Cpus {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Cpus".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number of processors, to a thousandth.",
            "type": "number",
            "minimum": 0.01,
            "maximum": 1_000_000
        })
    }
}

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    Memory,
    Cpus,
    Pids,
    OpenFiles,
    FileSize,
    CpuTime,
}

impl LimitKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpus => "cpus",
            Self::Pids => "pids",
            Self::OpenFiles => "open files",
            Self::FileSize => "file size",
            Self::CpuTime => "cpu time",
        }
    }
}

/// How a limit is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitEnforcement {
    /// It cannot be passed.
    Kernel,
    /// The server looks several times a second, and kills the command when it has passed the limit.
    Sampled,
}

/// How each limit is enforced; absent without that limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LimitsEnforced {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<LimitEnforcement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<LimitEnforcement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pids: Option<LimitEnforcement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<LimitEnforcement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_size: Option<LimitEnforcement>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<LimitEnforcement>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_processor_is_a_number() {
        let limits: Limits = serde_json::from_str(r#"{"cpus":1.5}"#).unwrap();
        assert_eq!(limits.cpus, Some(Cpus { thousandths: 1500 }));
        assert_eq!(serde_json::to_string(&limits).unwrap(), r#"{"cpus":1.5}"#);
        for refused in ["0", "-1", "0.009", "1e7", "\"1\""] {
            let text = format!(r#"{{"cpus":{refused}}}"#);
            assert!(serde_json::from_str::<Limits>(&text).is_err(), "{text}");
        }
    }
}
