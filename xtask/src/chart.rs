//! Lines over time or over a growing number, as a picture that any browser shows.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 280.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 40.0;
const COLOURS: [&str; 3] = ["#1f6feb", "#d1570b", "#2d8a4e"];

pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    /// Each with its name, and a value for each of `at`.
    pub(crate) lines: &'a [(&'a str, Vec<f64>)],
    pub(crate) at: &'a [f64],
    /// What is written below the chart, and where.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl<'a> Chart<'a> {
    pub(crate) fn over_minutes(
        title: &'a str,
        lines: &'a [(&'a str, Vec<f64>)],
        minutes: &'a [f64],
    ) -> Self {
        let last = minutes.last().copied().unwrap_or(1.0);
        let ticks = (0..=4).map(|tick| {
            let minute = last / 4.0 * f64::from(tick);
            (minute, format!("{} min", short((minute * 10.0).round() / 10.0)))
        });
        Self { title, lines, at: minutes, ticks: ticks.collect() }
    }

    pub(crate) fn to_svg(&self) -> String {
        let values = self.lines.iter().flat_map(|(_, values)| values);
        let most = round_up(values.copied().fold(0.0, f64::max));
        let last = self.at.last().copied().filter(|last| *last > 0.0).unwrap_or(1.0);
        let x = |at: f64| LEFT + at / last * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / most * (HEIGHT - TOP - BOTTOM);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"18\" font-size=\"14\" font-weight=\"bold\">{}</text>\n",
            self.title
        );
        for part in 0..=4 {
            let value = most / 4.0 * f64::from(part);
            let row = y(value);
            _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {row:.1}H{}\" stroke=\"#ddd\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                row + 4.0,
                short(value),
            );
        }
        for (at, text) in &self.ticks {
            _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
                x(*at),
                HEIGHT - BOTTOM + 20.0,
            );
        }
        for ((name, values), (nth, colour)) in self.lines.iter().zip(COLOURS.iter().enumerate()) {
            let points: Vec<String> = self
                .at
                .iter()
                .zip(values)
                .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
                .collect();
            let begin = LEFT + 230.0 * nth as f64;
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
        let svg = Chart::over_minutes("t", &lines, &[0.5, 2.0]).to_svg();
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
