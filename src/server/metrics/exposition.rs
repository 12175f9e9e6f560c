//! Prometheus' text format, version 0.0.4: families of samples, each with a name, a help line and a
//! type.

use std::fmt::{Display, Write};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Default)]
pub struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family. What counts has a name that ends in `_total`; all else is a gauge.
    pub fn family(&mut self, name: &'static str, help: &str) {
        let is_counter = name.ends_with("_total");
        self.begin(name, if is_counter { "counter" } else { "gauge" }, help);
    }

    pub fn histogram(&mut self, name: &'static str, help: &str) {
        self.begin(name, "histogram", help);
    }

    fn begin(&mut self, name: &'static str, kind: &str, help: &str) {
        self.family = name;
        self.text.extend([
            "# HELP ",
            name,
            " ",
            help,
            "\n# TYPE ",
            name,
            " ",
            kind,
            "\n",
        ]);
    }

    pub fn single(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, help);
        self.sample("", &[], value);
    }

    /// A family with a figure for each value of one label.
    pub fn by_label<L: AsRef<str>, V: Display>(
        &mut self,
        name: &'static str,
        help: &str,
        label: &str,
        figures: impl IntoIterator<Item = (L, V)>,
    ) {
        self.family(name, help);
        for (value, figure) in figures {
            self.sample("", &[(label, value.as_ref())], figure);
        }
    }

    /// One figure of the present family. `suffix` is that of a histogram's parts.
    pub fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.extend([self.family, suffix]);
        for (position, (name, value)) in labels.iter().enumerate() {
            self.text.extend([
                if position == 0 { "{" } else { "," },
                name,
                "=\"",
                &escaped(value),
                "\"",
            ]);
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, " {value}");
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        let mut exposition = Exposition::default();
        exposition.family("f", "");
        exposition.sample("", &[("l", "a\"} 1\n\\")], 0);
        assert!(
            exposition
                .into_text()
                .ends_with("f{l=\"a\\\"} 1\\n\\\\\"} 0\n")
        );
    }
}
