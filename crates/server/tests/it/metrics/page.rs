//! A strict parser of the text format of Prometheus.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed page.
#[derive(Debug, Default)]
pub struct Page {
    families: BTreeMap<String, Family>,
}

#[derive(Debug)]
struct Family {
    kind: String,
    samples: BTreeMap<Series, f64>,
}

/// A sample's name and labels.
type Series = (String, BTreeMap<String, String>);

impl Page {
    pub fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut page = Self::default();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let (name, help) = line.strip_prefix("# HELP ").unwrap().split_once(' ').unwrap();
            assert!(is_name(name, ":") && help.ends_with('.'), "{line:?}");
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind:?}");
            let mut family = Family { kind: kind.to_owned(), samples: BTreeMap::new() };
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let (series, value) = sample(line);
                let suffix = series.0.strip_prefix(name).unwrap_or_else(|| panic!("{line:?}"));
                let suffixes: &[&str] = match kind {
                    "histogram" => &["_bucket", "_sum", "_count"],
                    _ => &[""],
                };
                assert!(suffixes.contains(&suffix), "{line:?} in the family {name}");
                let twice = family.samples.insert(series, value);
                assert_eq!(twice, None, "a second {line:?}");
            }
            assert!(!family.samples.is_empty(), "{name} has no sample");
            family.check(name);
            let twice = page.families.insert(name.to_owned(), family);
            assert!(twice.is_none(), "the family {name} comes twice");
        }
        page
    }

    /// The value of the sample with exactly these labels.
    #[track_caller]
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let labels = labels.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let series = (name.to_owned(), labels.collect::<BTreeMap<_, _>>());
        let mut all = self.families.values().flat_map(|family| &family.samples);
        let found = all.find(|(known, _)| **known == series);
        *found.unwrap_or_else(|| panic!("no {series:?}")).1
    }

    /// A sample without labels.
    #[track_caller]
    pub fn plain(&self, name: &str) -> f64 {
        self.value(name, &[])
    }

    /// The sum of all samples with this name.
    pub fn sum(&self, name: &str) -> f64 {
        let all = self.families.values().flat_map(|family| &family.samples);
        all.filter(|((known, _), _)| known == name).map(|(_, value)| value).sum()
    }

    pub fn values_of(&self, label: &str) -> BTreeSet<&str> {
        let all = self.families.values().flat_map(|family| family.samples.keys());
        all.filter_map(|(_, labels)| labels.get(label)).map(String::as_str).collect()
    }
}

impl Family {
    fn check(&self, name: &str) {
        match self.kind.as_str() {
            "counter" => {
                assert!(name.ends_with("_total"), "{name}");
                assert!(self.samples.values().all(|value| *value >= 0.0), "{name}");
            }
            "gauge" => assert!(!name.ends_with("_total"), "{name}"),
            _ => self.check_histogram(name),
        }
    }

    /// For each set of labels: buckets never decrease, and the last one is the count.
    fn check_histogram(&self, name: &str) {
        let mut sets: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        for ((sample, labels), value) in &self.samples {
            let mut labels = labels.clone();
            let bound = labels.remove("le").map(|bound| number(&bound));
            assert_eq!(bound.is_some(), sample.ends_with("_bucket"), "{sample}");
            sets.entry(labels).or_default().extend(bound.map(|bound| (bound, *value)));
        }
        for (labels, mut buckets) in sets {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.is_sorted_by(|one, next| one.1 <= next.1), "{name} {labels:?}");
            let of = |suffix: &str| self.samples[&(format!("{name}{suffix}"), labels.clone())];
            let last = buckets.last().copied().unwrap();
            assert_eq!(last, (f64::INFINITY, of("_count")), "{name} {labels:?}");
            assert!(of("_sum") >= 0.0, "{name} {labels:?}");
        }
    }
}

/// `name{label="value",…} number`
fn sample(line: &str) -> (Series, f64) {
    let end = line.find(['{', ' ']).unwrap();
    let (name, mut rest) = line.split_at(end);
    assert!(is_name(name, ":"), "{line:?}");
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value, behind) = label(rest);
            assert_eq!(labels.insert(label, value), None, "a label twice: {line:?}");
            rest = &behind[1..];
            match behind.as_bytes()[0] {
                b',' => {}
                b'}' => break,
                _ => panic!("{line:?}"),
            }
        }
    }
    let value = number(rest.strip_prefix(' ').unwrap());
    ((name.to_owned(), labels), value)
}

/// A label's name, its value without escapes, and what follows.
fn label(text: &str) -> (String, String, &str) {
    let (name, rest) = text.split_once("=\"").unwrap();
    assert!(is_name(name, ""), "{text:?}");
    let (mut value, mut characters) = (String::new(), rest.char_indices());
    loop {
        match characters.next().unwrap() {
            (at, '"') => return (name.to_owned(), value, &rest[at + 1..]),
            (_, '\\') => value.push(match characters.next().unwrap().1 {
                'n' => '\n',
                plain @ ('\\' | '"') => plain,
                other => panic!("the escape {other:?} in {text:?}"),
            }),
            (_, plain) => value.push(plain),
        }
    }
}

fn is_name(name: &str, more: &str) -> bool {
    let first = |first: char| first.is_ascii_alphabetic() || first == '_' || more.contains(first);
    name.starts_with(first) && name.chars().all(|one| first(one) || one.is_ascii_digit())
}

fn number(text: &str) -> f64 {
    match text {
        "+Inf" => f64::INFINITY,
        text => {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b".-e".contains(&byte));
            assert!(digits, "{text:?} is no number");
            text.parse().unwrap()
        }
    }
}

#[test]
fn label_values_are_unescaped() {
    let ((name, labels), value) = sample(r#"a_total{b="c \"d\\e\"\nf",g=""} 2.5"#);
    assert_eq!((name.as_str(), value), ("a_total", 2.5));
    assert_eq!(labels["b"], "c \"d\\e\"\nf");
    assert_eq!(labels["g"], "");
}
