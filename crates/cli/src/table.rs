//! Rows under a heading, as wide as they need to be.

use std::fmt::Write;

/// Columns side by side; the last one is cut where the line would not fit into `width`.
pub(crate) fn table<const N: usize>(
    heading: [&str; N],
    rows: &[[String; N]],
    width: Option<usize>,
) -> String {
    let heading = heading.map(str::to_owned);
    let mut widths = [0; N];
    for row in std::iter::once(&heading).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        text.push_str(&cut(&line(row, &widths), width));
        text.push('\n');
    }
    text
}

fn line(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        // A string takes whatever is written to it.
        _ = write!(line, "{cell:width$}  ");
    }
    line.truncate(line.trim_end().len());
    line
}

fn cut(line: &str, width: Option<usize>) -> String {
    match width {
        Some(width) if line.chars().count() > width => {
            line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> [[String; 2]; 2] {
        [["a".into(), "make".into()], ["bcd".into(), "sleep 100".into()]]
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        assert_eq!(table(["ID", "C"], &rows(), None), "ID   C\na    make\nbcd  sleep 100\n");
    }

    #[test]
    fn what_does_not_fit_is_cut_and_shown_to_be() {
        assert_eq!(table(["ID", "C"], &rows(), Some(10)), "ID   C\na    make\nbcd  slee…\n");
    }
}
