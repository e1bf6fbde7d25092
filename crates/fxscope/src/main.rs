//! The `fxscope` command.

pub(crate) mod cli;
mod documents;
mod foreground;
mod options;
mod terminal;

/// That of musl has one lock, and gives memory back to the kernel each time.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    cli::main()
}

/// The same name means the same in all commands.
#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::CommandFactory as _;

    use super::cli::Cli;

    /// Options of the same name whose values differ, and what they are.
    const DIFFERENT: &[(&str, &str)] = &[
        ("interval", "simulated time, or milliseconds of perf"),
        ("keep", "a folder of measurements, or a number of snapshots"),
        ("machine", "a simulated machine, or one that LINPACK ran on"),
        ("markdown", "in place of the text, or in a file beside it"),
        ("only", "keys, or benchmarks"),
        ("output", "a record, an answer, a trace, or a machine's keys"),
        ("program", "an executable, its name, or a program of ranks"),
        ("quantum", "cycles of the simulator, or time of a measurement"),
    ];

    /// Options by long name: the commands that have it, by the names of its values, of which switches have none.
    #[derive(Default)]
    struct Options {
        values: BTreeMap<String, BTreeMap<Vec<String>, BTreeSet<String>>>,
        /// Their short names.
        short: BTreeMap<String, BTreeSet<char>>,
    }

    /// Adds the options of a command and of those below it.
    fn collect(command: &clap::Command, path: &str, options: &mut Options) {
        for argument in command.get_arguments() {
            let Some(long) = argument.get_long() else { continue };
            let takes = argument.get_action().takes_values();
            let names = argument.get_value_names().filter(|_| takes).unwrap_or_default();
            let names = names.iter().map(ToString::to_string).collect();
            options.values.entry(long.to_owned()).or_default().entry(names).or_default().insert(path.to_owned());
            options.short.entry(long.to_owned()).or_default().extend(argument.get_short());
        }
        for below in command.get_subcommands() {
            collect(below, &format!("{path} {}", below.get_name()), options);
        }
    }

    #[test]
    fn options_with_the_same_name_have_the_same_short_name_and_the_same_values() {
        let mut options = Options::default();
        collect(&Cli::command(), "fxscope", &mut options);
        assert!(options.values.contains_key("format") && options.values.len() > 50);
        let known = |name: &str| DIFFERENT.iter().any(|(known, _)| *known == name);
        let different: Vec<_> = options.values.iter().filter(|(name, of)| of.len() > 1 && !known(name)).collect();
        assert!(different.is_empty(), "{different:#?}");
        for (name, what) in DIFFERENT {
            let differs = options.values.get(*name).is_some_and(|of| of.len() > 1);
            assert!(differs, "--{name} is the same everywhere, not {what}");
        }
        let several: Vec<_> = options.short.iter().filter(|(_, short)| short.len() > 1).collect();
        assert!(several.is_empty(), "{several:?}");
    }

    #[test]
    fn answers_are_written_by_format_and_output_in_all_commands() {
        let mut options = Options::default();
        collect(&Cli::command(), "fxscope", &mut options);
        let commands = |name: &str| -> BTreeSet<&String> { options.values[name].values().flatten().collect() };
        let with_format: BTreeSet<&String> = commands("format");
        assert!(with_format.is_subset(&commands("output")), "{with_format:?}");
        // The older names are not shown. Commands whose --output is a record, or a machine's keys, have no other one.
        let shown =
            |command: &clap::Command| command.get_arguments().any(|a| a.get_long() == Some("json") && !a.is_hide_set());
        let cli = Cli::command();
        let mut open: Vec<&clap::Command> = cli.get_subcommands().collect();
        let mut names = BTreeSet::new();
        while let Some(command) = open.pop() {
            if shown(command) {
                names.insert(command.get_name());
            }
            open.extend(command.get_subcommands());
        }
        assert_eq!(names, ["fit", "resume", "run"].into());
    }
}
