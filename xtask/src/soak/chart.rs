//! Lines over time, as a picture that any browser shows.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 40.0;
const COLOURS: [&str; 2] = ["#1f6feb", "#d1570b"];

pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    /// Each with its name, and a value for each time of `minutes`.
    pub(super) lines: &'a [(&'a str, Vec<f64>)],
    pub(super) minutes: &'a [f64],
}

impl Chart<'_> {
    pub(super) fn to_svg(&self) -> String {
        let values = self.lines.iter().flat_map(|(_, values)| values);
        let most = round_up(values.copied().fold(0.0, f64::max));
        let last = self.minutes.last().copied().unwrap_or(1.0);
        let x = |minute: f64| LEFT + minute / last * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
            self.title
        );
        for tick in 0..=4 {
            let (value, minute) = (most / 4.0 * f64::from(tick), last / 4.0 * f64::from(tick));
            let (row, column) = (y(value), x(minute));
            _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {row:.1}H{}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
                 <text x=\"{column:.1}\" y=\"{}\" text-anchor=\"middle\">{} min</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                row + 4.0,
                short(value),
                HEIGHT - BOTTOM + 20.0,
                short((minute * 10.0).round() / 10.0),
            );
        }
        for ((name, values), (nth, colour)) in self.lines.iter().zip(COLOURS.iter().enumerate()) {
            let points: Vec<String> = self
                .minutes
                .iter()
                .zip(values)
                .map(|(minute, value)| format!("{:.1},{:.1}", x(*minute), y(*value)))
                .collect();
            let begin = LEFT + 260.0 * nth as f64;
            _ = writeln!(
                svg,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" points=\"{}\"/>\
                 <text x=\"{begin}\" y=\"36\" fill=\"{colour}\">{name}</text>",
                points.join(" ")
            );
        }
        svg + "</svg>\n"
    }
}

/// To a number that is easily read and has four easily read parts.
fn round_up(value: f64) -> f64 {
    let mut step = 1.0;
    while step * 10.0 < value {
        step *= 10.0;
    }
    [1.0, 2.0, 4.0, 6.0, 8.0, 10.0]
        .iter()
        .map(|times| times * step)
        .find(|most| *most >= value)
        .unwrap_or(1.0)
}

fn short(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_inside_the_picture() {
        let lines = [("one", vec![0.0, 73.0]), ("other", vec![5.0, 1.0])];
        let svg = Chart { title: "t", lines: &lines, minutes: &[0.5, 2.0] }.to_svg();
        assert_eq!(svg.matches("<polyline").count(), 2);
        let points = svg.split("points=\"").skip(1).filter_map(|rest| rest.split_once('"'));
        for (x, y) in points.flat_map(|(list, _)| list.split(' ')).filter_map(|p| p.split_once(','))
        {
            let (x, y): (f64, f64) = (x.parse().unwrap(), y.parse().unwrap());
            assert!((LEFT..=WIDTH - RIGHT).contains(&x), "{svg}");
            assert!((TOP..=HEIGHT - BOTTOM).contains(&y), "{svg}");
        }
    }

    #[test]
    fn the_scale_reaches_the_highest_value() {
        for (value, want) in
            [(0.0, 1.0), (0.4, 1.0), (7.0, 8.0), (10.0, 10.0), (73.0, 80.0), (81.0, 100.0)]
        {
            assert_eq!(round_up(value), want, "{value}");
        }
    }
}
