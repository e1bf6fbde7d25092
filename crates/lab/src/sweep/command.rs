//! The command lines of a sweep's runs, and what their results depend on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fxscope_report::verdict::quoted;

use super::design::Point;
use super::plan::{Command, OptionValue, Scalar};
use super::template::Template;
use crate::Error;

/// A run of a sweep as words of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// Options of `fxscope run`.
    pub options: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Files that it reads, as the plan lists them.
    pub inputs: Vec<PathBuf>,
}

impl Command {
    /// Returns the words for a point of the design.
    ///
    /// # Errors
    /// If a brace has no partner.
    pub(super) fn words(&self, point: &Point) -> Result<Words, Error> {
        let filled = |value: &Scalar| Ok::<_, Error>(Template::parse(&value.to_string())?.filled(point));
        let mut options = Vec::new();
        for (name, value) in &self.options {
            let name = name.replace('_', "-");
            let values = match value {
                OptionValue::One(value) => std::slice::from_ref(value),
                OptionValue::Many(values) => values,
            };
            for value in values {
                match value {
                    Scalar::Flag(true) => options.push(format!("--{name}")),
                    Scalar::Flag(false) => {}
                    value => options.push(format!("--{name}={}", filled(value)?)),
                }
            }
        }
        options.extend(pairs("--set", &self.set, filled)?);
        options.extend(pairs("-e", &self.environment, filled)?);
        let mut command = vec![self.program.filled(point)];
        command.extend(self.arguments.iter().map(|argument| argument.filled(point)));
        let inputs = self.inputs.iter().map(|input| input.filled(point).into()).collect();
        Ok(Words { options, command, inputs })
    }
}

/// Returns an option with `KEY=VALUE` for each entry of a table.
fn pairs(
    option: &str,
    table: &BTreeMap<String, Scalar>,
    filled: impl Fn(&Scalar) -> Result<String, Error>,
) -> Result<Vec<String>, Error> {
    let mut words = Vec::new();
    for (key, value) in table {
        words.extend([option.to_owned(), format!("{key}={}", filled(value)?)]);
    }
    Ok(words)
}

impl Words {
    /// Returns the program's file, for a plan in `folder`.
    #[must_use]
    pub fn program(&self, folder: &Path) -> PathBuf {
        folder.join(&self.command[0])
    }

    /// Returns the command line that makes the run by hand.
    #[must_use]
    pub fn shown(&self) -> String {
        let words = ["fxscope", "run"].into_iter().map(str::to_owned);
        let all =
            words.chain(self.options.iter().cloned()).chain(["--".to_owned()]).chain(self.command.iter().cloned());
        all.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns everything that its counts depend on apart from the simulator, for a plan in `folder`. Libraries are not
    /// known before the run: its record has their digests.
    ///
    /// # Errors
    /// If the program or an input cannot be read.
    pub(super) fn key(&self, folder: &Path, digests: &Digests) -> Result<Vec<Vec<u8>>, Error> {
        let mut key = vec![digests.of(&self.program(folder))?];
        for words in [&self.options, &self.command] {
            key.extend(words.iter().map(|word| word.clone().into_bytes()));
            key.push(Vec::new());
        }
        for input in &self.inputs {
            key.push(digests.of(&folder.join(input))?);
        }
        for file in machine_files(&self.options, folder) {
            key.push(digests.of(&file)?);
        }
        Ok(key)
    }
}

/// Returns the files of a machine that is given as a folder.
fn machine_files(options: &[String], folder: &Path) -> Vec<PathBuf> {
    let given = options.iter().rev().find_map(|option| option.strip_prefix("--machine="));
    let entries = given.and_then(|machine| std::fs::read_dir(folder.join(machine)).ok());
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

/// Digests of files, each read once.
#[derive(Debug, Default)]
pub(super) struct Digests {
    known: std::cell::RefCell<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Digests {
    /// Returns the digest of a file.
    fn of(&self, file: &Path) -> Result<Vec<u8>, Error> {
        if let Some(digest) = self.known.borrow().get(file) {
            return Ok(digest.clone());
        }
        let digest = digest_of(file)?;
        self.known.borrow_mut().insert(file.to_owned(), digest.clone());
        Ok(digest)
    }
}

/// Reads a file piece by piece and returns its digest.
fn digest_of(file: &Path) -> Result<Vec<u8>, Error> {
    let digest = std::fs::File::open(file).and_then(fxscope_record::digest_of);
    Ok(digest.map_err(|e| format!("{}: cannot be read ({e})", file.display()))?.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::Plan;

    const PLAN: &str = r#"
        [run]
        program = "a {n}.elf"
        arguments = ["n={n}", 7]
        options = { cpus = "12-{last}", sample = true, data = false, pages = ["bss=2MiB", "heap=64KiB"] }
        set = { "tlb.l1_entries" = "{n}" }
        environment = { OMP_NUM_THREADS = 12 }
        [[factor]]
        name = "n"
        values = [8]
        [[factor]]
        name = "last"
        values = ["23"]
    "#;

    #[test]
    fn a_point_becomes_a_command_line() {
        let plan = Plan::parse(PLAN).expect("a plan");
        let words = plan.run.words(&plan.points().expect("points")[0]).expect("words");
        assert_eq!(
            words.shown(),
            "fxscope run --cpus=12-23 --pages=bss=2MiB --pages=heap=64KiB --sample --set tlb.l1_entries=8 \
             -e OMP_NUM_THREADS=12 -- 'a 8.elf' n=8 7"
        );
    }

    #[test]
    fn a_key_changes_with_the_program_an_input_and_the_machine() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("writable");
        std::fs::create_dir(folder.path().join("mine")).expect("a folder");
        let words = Words {
            options: vec!["--machine=mine".into()],
            command: vec!["a.elf".into()],
            inputs: vec!["data".into()],
        };
        let key = || words.key(folder.path(), &Digests::default());
        file("a.elf", "1");
        let missing = key().expect_err("no input").to_string();
        assert!(missing.contains("data"), "{missing}");
        let mut keys = Vec::new();
        for (name, text) in
            [("data", "1"), ("mine/machine.toml", "1"), ("a.elf", "2"), ("data", "2"), ("mine/machine.toml", "2")]
        {
            file(name, text);
            keys.push(key().expect("all files"));
        }
        for (i, key) in keys.iter().enumerate() {
            assert!(keys[..i].iter().all(|other| other != key), "key {i}");
        }
    }

    #[test]
    fn words_are_quoted_as_shells_read_them() {
        assert_eq!(["a=b", "", "a b", "it's"].map(quoted), ["a=b", "''", "'a b'", "'it'\\''s'"]);
    }
}
