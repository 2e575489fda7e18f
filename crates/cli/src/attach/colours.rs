//! Whether text would be shown as usual: colours, bold, underlined and the like (`ESC [` … `m`).

use std::collections::BTreeSet;

/// What is not as usual, each by the number that puts it back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Colours(BTreeSet<u16>);

impl Colours {
    pub(crate) fn are_usual(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers of one sequence, with what is between them.
    pub(crate) fn see(&mut self, numbers: &[u8]) {
        let mut numbers = numbers.split(|byte| *byte == b';');
        while let Some(number) = numbers.next() {
            // Behind a colon: which colour, or which kind of line.
            let parts: Vec<_> = number.split(|byte| *byte == b':').map(value).collect();
            self.set(parts[0]);
            if let ([38 | 48 | 58], Some(form)) = (parts.as_slice(), numbers_of_a_colour(&numbers))
            {
                numbers.by_ref().take(form).for_each(drop);
            }
        }
    }

    fn set(&mut self, number: u16) {
        let put_back_by = match number {
            0 => return self.0.clear(),
            22..=25 | 27..=29 | 39 | 49 | 59 => {
                self.0.remove(&number);
                return;
            }
            1 | 2 => 22,
            3 => 23,
            4 | 21 => 24,
            5 | 6 => 25,
            7..=9 => number + 20,
            30..=38 | 90..=97 => 39,
            40..=48 | 100..=107 => 49,
            58 => 59,
            // Only by all at once.
            _ => 0,
        };
        self.0.insert(put_back_by);
    }
}

/// One that is left out is 0.
fn value(number: &[u8]) -> u16 {
    match number {
        b"" => 0,
        _ => std::str::from_utf8(number).ok().and_then(|n| n.parse().ok()).unwrap_or(u16::MAX),
    }
}

/// How many follow that say which colour: of a table, or red, green and blue.
fn numbers_of_a_colour<'a>(rest: &(impl Iterator<Item = &'a [u8]> + Clone)) -> Option<usize> {
    match rest.clone().next() {
        Some(b"5") => Some(2),
        Some(b"2") => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_back_one_by_one_or_at_once_is_as_usual() {
        for (sequences, usual) in [
            ("31 39", true),
            ("1;31;44 22;39;49", true),
            ("1;31 39", false),
            ("31 0;0", true),
            ("31 ;", true),
            ("31 ", true),
            ("0;1", false),
            ("4:3 24", true),
            ("38;5;0", false),
            ("38;5;1 39", true),
            ("48;2;0;0;0", false),
            ("38:2::0:0:0", false),
            ("38:2::0:0:0 39", true),
            ("53 39", false),
            ("99999 0", true),
        ] {
            let mut colours = Colours::default();
            sequences.split(' ').for_each(|numbers| colours.see(numbers.as_bytes()));
            assert_eq!(colours.are_usual(), usual, "{sequences:?}");
        }
    }
}
