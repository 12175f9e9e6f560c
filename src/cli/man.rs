//! `gatepost man`: the manual page, made from the tables of commands and settings.

use super::arguments::Invocation;
use super::command::{Command, EXIT_CODES, Run};
use super::failure::Failure;
use super::{COMMANDS, output};
use crate::config::settings::SETTINGS;

pub(super) const COMMAND: Command = Command {
    name: "man",
    values: &[],
    options: &[],
    summary: "Prints the manual page, in roff.",
    example: "gatepost man > /usr/local/share/man/man1/gatepost.1",
    run: Run::Once(run),
};

fn run(_: &Invocation) -> Result<(), Failure> {
    output::line(&page(COMMANDS))
}

fn page(commands: &[&Command]) -> String {
    let mut page = format!(
        ".TH GATEPOST 1 \"\" \"gatepost {}\" \"Gatepost\"\n.SH NAME\ngatepost \\- an OpenID Connect and OAuth 2.0 provider\n\
         .SH SYNOPSIS\n.B gatepost\n.I COMMAND\n[\\-\\-env\\-file\n.IR FILE ]\n[\\-\\-SETTING\n.IR VALUE ]...\n\
         .SH DESCRIPTION\nPeople sign in once, applications learn who they are, and services get tokens. One binary, one\n\
         Postgres database.\n.SH COMMANDS\n",
        env!("CARGO_PKG_VERSION")
    );
    for command in commands {
        page.push_str(&section(command));
    }
    page.push_str(".SH SETTINGS\nFrom the environment, from a file named by \\-\\-env\\-file, or from flags.\n");
    for setting in SETTINGS {
        let flag = setting.flag().map(|flag| format!(", {flag}")).unwrap_or_default();
        let meaning = setting.meaning.replace(['`', '°'], "");
        let default = setting.default_text().replace('`', "");
        page.push_str(&format!(
            ".TP\n.B {}{}\n{}\n",
            setting.name,
            text(&flag),
            text(&format!("{meaning} (default: {default})"))
        ));
    }
    page.push_str(".SH EXIT STATUS\n");
    page.push_str(&text(EXIT_CODES));
    page
}

fn section(command: &Command) -> String {
    let mut section = format!(".SS {}\n{}\n", text(&command.usage()), text(&command.summary.replace('`', "")));
    for option in command.shown_options() {
        section.push_str(&format!(".TP\n.B {}\n{}\n", text(&option.usage()), text(&option.meaning.replace('`', ""))));
    }
    section.push_str(&format!(".PP\nExample:\n.PP\n.RS\n.nf\n{}\n.fi\n.RE\n", text(command.example)));
    section
}

/// A line of text: hyphens as typed, nothing taken for a request or an escape.
fn text(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}
