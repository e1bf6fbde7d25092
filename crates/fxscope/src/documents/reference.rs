//! Commands and options as Markdown.

use std::fmt::Write as _;

use clap::Arg;

/// Returns the reference: a chapter for each command, in the order of the help.
pub(crate) fn reference(mut cli: clap::Command) -> String {
    cli.build();
    let mut text = String::new();
    chapter(&cli, &mut text);
    text
}

/// Writes the chapter of a command, then those of the commands below it.
fn chapter(command: &clap::Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or(command.get_about());
    // The first is the title of the page.
    let heading = if text.is_empty() { "#" } else { "##" };
    let _ = writeln!(text, "{heading} {name}\n\n{}\n", escaped(&about.map(ToString::to_string).unwrap_or_default()));
    let usage = command.clone().render_usage().to_string();
    let _ = writeln!(text, "```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
    let shown =
        |argument: &&Arg| !argument.is_hide_set() && argument.get_id() != "help" && argument.get_id() != "version";
    for argument in command.get_arguments().filter(shown) {
        option(argument, text);
    }
    for below in below(command) {
        chapter(below, text);
    }
}

/// Returns the commands below a command, without `help`.
fn below(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}

/// Writes an option or an argument: its form, its meaning, its default and its values.
fn option(argument: &Arg, text: &mut String) {
    let _ = writeln!(text, "### `{argument}`\n");
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(text, "{}\n", escaped(&help));
    if !argument.get_action().takes_values() {
        return;
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !argument.is_hide_default_value_set() {
        let _ = writeln!(text, "Default: `{}`\n", defaults.join(" "));
    }
    let values: Vec<_> = argument.get_possible_values().into_iter().filter(|value| !value.is_hide_set()).collect();
    for value in &values {
        let meaning = value.get_help().map(|help| format!(": {}", escaped(&help.to_string()))).unwrap_or_default();
        let _ = writeln!(text, "* `{}`{meaning}", value.get_name());
    }
    if !values.is_empty() {
        text.push('\n');
    }
}

/// Returns a text in which nothing but pieces of code has a meaning for Markdown.
fn escaped(text: &str) -> String {
    let mut code = false;
    let mut out = String::new();
    for c in text.chars() {
        code ^= c == '`';
        match c {
            '<' if !code => out.push_str("&lt;"),
            '*' | '_' | '[' | '|' if !code => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// Returns the options of a command and of those below it that a user sees.
    fn options(command: &clap::Command) -> usize {
        let named = |argument: &&Arg| argument.get_id() != "help" && argument.get_id() != "version";
        command.get_arguments().filter(|a| !a.is_positional() && !a.is_hide_set()).filter(named).count()
            + below(command).map(options).sum::<usize>()
    }

    #[test]
    fn the_reference_has_every_option_once_for_each_command() {
        let mut cli = Cli::command();
        cli.build();
        let text = reference(Cli::command());
        assert_eq!(text.lines().filter(|line| line.starts_with("### `-")).count(), options(&cli));
        assert!(text.contains("\n## fxscope jitter simulate\n") && text.contains("\n### `--cpus <LIST>`"));
    }

    #[test]
    fn code_is_left_as_it_is() {
        assert_eq!(escaped("<A> of `OMP_<N>*` and a_b"), "&lt;A> of `OMP_<N>*` and a\\_b");
    }
}
