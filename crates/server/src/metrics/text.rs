//! The text format: families of samples, each with what it is and of which kind.

use std::fmt::{Display, Write as _};

use lastbyte_engine::{Distribution, Histogram};

/// A text that grows by families.
#[derive(Debug, Default)]
pub(super) struct MetricsText(pub(super) String);

/// What the next family is about.
#[derive(Debug)]
pub(super) struct FamilyHelp<'a> {
    text: &'a mut String,
    help: &'a str,
}

/// One family, to which samples are added.
#[derive(Debug)]
pub(super) struct Family<'a> {
    text: &'a mut String,
    name: &'static str,
}

/// Names and values; the values may have any character.
pub(super) type Labels<'a> = &'a [(&'static str, &'a str)];

impl MetricsText {
    pub(super) fn about<'a>(&'a mut self, help: &'a str) -> FamilyHelp<'a> {
        FamilyHelp { text: &mut self.0, help }
    }
}

/// Each name once: a family is in one piece.
impl<'a> FamilyHelp<'a> {
    /// One number that only goes up.
    pub(super) fn counter(self, name: &'static str, value: impl Display) {
        self.counters(name).sample(&[], value);
    }

    pub(super) fn gauge(self, name: &'static str, value: impl Display) {
        self.gauges(name).sample(&[], value);
    }

    /// Several, told apart by labels.
    pub(super) fn counters(self, name: &'static str) -> Family<'a> {
        self.family(name, "counter")
    }

    pub(super) fn gauges(self, name: &'static str) -> Family<'a> {
        self.family(name, "gauge")
    }

    pub(super) fn histograms(self, name: &'static str) -> Family<'a> {
        self.family(name, "histogram")
    }

    fn family(self, name: &'static str, kind: &str) -> Family<'a> {
        let Self { text, help } = self;
        // A string takes whatever it is given.
        _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        Family { text, name }
    }
}

impl Family<'_> {
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    pub(super) fn histogram(&mut self, labels: Labels<'_>, distribution: &Distribution) {
        let bounds = Histogram::BOUNDS.iter().map(|bound| bound.as_secs_f64().to_string());
        let mut so_far = 0;
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(distribution.counts) {
            so_far += count;
            self.line("_bucket", labels, Some(&bound), so_far);
        }
        self.line("_sum", labels, None, distribution.sum.as_secs_f64());
        self.line("_count", labels, None, so_far);
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, bound: Option<&str>, value: impl Display) {
        let labels = labels.iter().copied().chain(bound.map(|bound| ("le", bound)));
        let labels: Vec<_> =
            labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels =
            if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        // As above.
        _ = writeln!(self.text, "{}{suffix}{labels} {value}", self.name);
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_family_says_what_it_is_and_then_its_samples() {
        let mut text = MetricsText::default();
        let mut family = text.about("Things that came.").counters("things_total");
        family.sample(&[("kind", "plain"), ("of", "a")], 3);
        family.sample(&[("kind", "a \"b\\c\"\nd"), ("of", "")], 0.5);
        text.about("How hot it is.").gauge("heat", -1);
        let want = r#"# HELP things_total Things that came.
# TYPE things_total counter
things_total{kind="plain",of="a"} 3
things_total{kind="a \"b\\c\"\nd",of=""} 0.5
# HELP heat How hot it is.
# TYPE heat gauge
heat -1
"#;
        assert_eq!(text.0, want);
    }

    #[test]
    fn a_histogram_adds_up() {
        let histogram = Histogram::default();
        histogram.note(Duration::from_micros(100));
        histogram.note(Duration::from_millis(2));
        histogram.note(Duration::from_secs(60));
        let mut text = MetricsText::default();
        let mut family = text.about("How long it took.").histograms("took_seconds");
        family.histogram(&[("of", "a")], &histogram.snapshot());
        let text = text.0;
        for line in [
            r#"took_seconds_bucket{of="a",le="0.0001"} 1"#,
            r#"took_seconds_bucket{of="a",le="0.001"} 1"#,
            r#"took_seconds_bucket{of="a",le="0.0025"} 2"#,
            r#"took_seconds_bucket{of="a",le="10"} 2"#,
            r#"took_seconds_bucket{of="a",le="+Inf"} 3"#,
            r#"took_seconds_sum{of="a"} 60.0021"#,
            r#"took_seconds_count{of="a"} 3"#,
        ] {
            assert!(text.lines().any(|one| one == line), "no {line} in\n{text}");
        }
    }
}
