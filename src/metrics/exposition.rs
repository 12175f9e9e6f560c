//! Prometheus' text format, version 0.0.4: families of samples, each with a name, a help line and a type.

use std::fmt::{Display, Write};

/// `Content-Type` of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a family's figures mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only ever grows, until the process ends.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bound.
    Histogram,
}

/// The text, while it is written.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
    family: &'static str,
}

impl Exposition {
    /// Begins a family; the samples that follow are its.
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) {
        self.family = name;
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.text.extend(["# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n"]);
    }

    /// A family of one sample without labels.
    pub fn single(&mut self, name: &'static str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample("", &[], value);
    }

    /// One figure of the present family. `suffix` is that of a histogram's parts.
    pub fn sample(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.extend([self.family, suffix]);
        for (position, (name, value)) in labels.iter().enumerate() {
            self.text.extend([if position == 0 { "{" } else { "," }, name, "=\"", &escaped(value), "\""]);
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        // Writing to a text cannot fail.
        let _ = writeln!(self.text, " {value}");
    }

    /// The whole.
    pub fn into_text(self) -> String {
        self.text
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_come_with_help_and_type() {
        let mut exposition = Exposition::default();
        exposition.single("up", Kind::Gauge, "Whether it is.", 1);
        exposition.family("tables_bytes", Kind::Gauge, "Bytes.");
        exposition.sample("", &[("table", "grants"), ("kind", "heap")], 2.5);
        assert_eq!(
            exposition.into_text(),
            "# HELP up Whether it is.\n# TYPE up gauge\nup 1\n# HELP tables_bytes Bytes.\n# TYPE tables_bytes gauge\n\
             tables_bytes{table=\"grants\",kind=\"heap\"} 2.5\n"
        );
    }

    #[test]
    fn a_label_cannot_leave_its_quotes() {
        let mut exposition = Exposition::default();
        exposition.family("f", Kind::Counter, "");
        exposition.sample("", &[("l", "a\"} 1\n\\")], 0);
        assert!(exposition.into_text().ends_with("f{l=\"a\\\"} 1\\n\\\\\"} 0\n"));
    }
}
