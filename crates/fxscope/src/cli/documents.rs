//! Commands that documents show exist, with the options that they have there.

use std::path::{Path, PathBuf};

use clap::CommandFactory as _;
use clap::error::{ContextKind, ErrorKind};
use fxscope_testkit::markdown;

use super::Cli;

/// Words of a shell's command line at which the command ends.
const ENDS: [&str; 8] = ["|", ">", ">>", "<", "&&", "||", ";", "&"];

/// Returns the root of the sources.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down").to_path_buf()
}

/// Returns the documents of users. The changelog and notes of experiments name commands of their time.
fn documents() -> Vec<PathBuf> {
    let files = ignore::WalkBuilder::new(root()).build().filter_map(Result::ok).map(ignore::DirEntry::into_path);
    let old = |path: &Path| path.ends_with("CHANGELOG.md") || path.starts_with(root().join("docs/notes"));
    files.filter(|path| path.extension().is_some_and(|x| x == "md") && !old(path)).collect()
}

/// Returns the words of the first command of a shell's line, or nothing if it is not ours.
fn words(line: &str) -> Option<Vec<String>> {
    let words = shlex::split(line).unwrap_or_else(|| panic!("no shell reads: {line}"));
    let ends = |word: &String| ENDS.contains(&word.as_str()) || word.starts_with("2>");
    let words: Vec<String> = words.into_iter().take_while(|word| !ends(word)).collect();
    // Variables may come first.
    let at = words.iter().position(|word| !word.contains('=')).filter(|&at| words[at] == "fxscope")?;
    // Lines of data may begin with our name, too.
    let named = words.get(at + 1).is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
    named.then(|| words[at..].to_vec())
}

/// Returns what is wrong with a command. Within sentences, commands may be incomplete.
fn wrong(cli: &mut clap::Command, words: &[String], complete: bool) -> Option<String> {
    let error = cli.try_get_matches_from_mut(words).err()?;
    let missing = matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand);
    let shown = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let value = error.get(ContextKind::InvalidValue).map(ToString::to_string).unwrap_or_default();
    let stands_for_one =
        value.is_empty() && !complete || value.chars().all(|c| c.is_ascii_uppercase()) || value.starts_with('$');
    let unknown = matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation);
    let accepted = shown || !complete && missing || unknown && stands_for_one;
    (!accepted).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

#[test]
fn every_command_that_documents_show_is_one() {
    let (mut found, mut commands, mut cli) = (Vec::new(), 0, Cli::command());
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        let name = document.strip_prefix(root()).expect("below the root").display();
        let blocks = markdown::blocks(&text);
        let complete = blocks.iter().flat_map(|block| block.commands("fxscope")).map(|command| (command, true));
        let mentioned = markdown::inline_code(&text).into_iter().map(|command| (command, false));
        let ours = |text: &str| text.split(' ').any(|word| word == "fxscope");
        for (command, complete) in complete.chain(mentioned).filter(|(command, _)| ours(&command.text)) {
            let Some(words) = words(&command.text) else { continue };
            commands += 1;
            let wrong = wrong(&mut cli, &words, complete);
            found.extend(wrong.map(|why| format!("{name}:{}: {}: {why}", command.line, command.text)));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    assert!(commands > 300, "commands are found: {commands}");
}
