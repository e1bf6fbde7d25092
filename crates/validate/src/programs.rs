//! The programs of a suite's runs: which of them fits may use, and which check the model.

use serde::Deserialize;

use crate::suite::{Row, Run, Suite, Text, lines};

/// The file of the programs.
pub(crate) const PROGRAMS: &str = "programs.csv";

/// What the measured values of a program are for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Numbers and rules of the model may be fitted to them.
    Fit,
    /// No fit may use them: their errors show how well the model predicts programs that it has not seen.
    Check,
}

impl Part {
    /// Both parts, in the order of reports.
    pub const ALL: [Part; 2] = [Part::Fit, Part::Check];

    /// Returns its name, as in `programs.csv`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Fit => "fit",
            Part::Check => "check",
        }
    }
}

/// One line of `programs.csv`: runs whose loops have the same shape.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its name. Lines of one name are one program in several kernels.
    pub program: String,
    /// A prebuilt kernel.
    pub kernel: String,
    /// Arguments that choose the loop's shape, separated by blanks: all of them are among the arguments of its runs.
    pub shape: String,
    /// What its measured values are for; the same in all lines of a program.
    pub part: Part,
    /// The mechanism of the machine that it mainly tests.
    pub mechanism: String,
}

impl Program {
    /// Returns whether it describes a run.
    fn has(&self, run: &Run) -> bool {
        let given = |word: &str| run.arguments.split_whitespace().any(|argument| argument == word);
        self.kernel == run.program && self.shape.split_whitespace().all(given)
    }

    /// Number of arguments of its shape.
    fn words(&self) -> usize {
        self.shape.split_whitespace().count()
    }
}

/// Reads the programs of a suite from their file.
///
/// # Errors
/// If the file is invalid, or lines of one program name different parts.
pub(crate) fn read(text: &Text) -> Result<Vec<Program>, String> {
    let mut programs: Vec<Program> = Vec::new();
    for (line, program) in lines::<Program>(text)? {
        let other = programs.iter().find(|p| p.program == program.program && p.part != program.part);
        if let Some(other) = other {
            return Err(format!(
                "{}:{line}: program '{}' belongs to {} in another line; a program is wholly in one part",
                text.file.display(),
                program.program,
                other.part.name()
            ));
        }
        programs.push(program);
    }
    Ok(programs)
}

impl Suite {
    /// Returns the program of a run: the line of `programs.csv` that names its kernel and most of its arguments. `None` if the
    /// folder has no such file.
    ///
    /// # Errors
    /// If no line describes the run, or two equally well.
    fn find_program(&self, run: &Run) -> Result<Option<&Program>, String> {
        if self.programs.is_empty() {
            return Ok(None);
        }
        let described: Vec<_> = self.programs.iter().filter(|program| program.has(run)).collect();
        let most = described.iter().map(|program| program.words()).max();
        let mut best = described.into_iter().filter(|program| Some(program.words()) == most);
        match (best.next(), best.next()) {
            (Some(program), None) => Ok(Some(program)),
            (None, _) => Err(format!("no line of {PROGRAMS} describes run '{}' ({})", run.run, run.program)),
            (Some(a), Some(b)) => Err(format!(
                "run '{}' is described by '{}' and '{}' of {PROGRAMS}; name more arguments in one of them",
                run.run, a.program, b.program
            )),
        }
    }

    /// Checks that every run has a program, and that no row of a program that checks the model was used for a fit.
    ///
    /// # Errors
    /// The run without a program, or the row and its program.
    pub(crate) fn check_programs(&self) -> Result<(), String> {
        for run in self.runs.values() {
            self.find_program(run)?;
        }
        for (row, _) in self.families.iter().flat_map(|family| &family.rows) {
            if !row.fitted.is_empty() && self.part(row) == Part::Check {
                return Err(format!(
                    "row '{}' was used to fit '{}', but its program '{}' belongs to check; a fit may use programs of the part fit only \
                     ({PROGRAMS})",
                    row.row,
                    row.fitted,
                    self.program(row)
                ));
            }
        }
        Ok(())
    }

    /// Returns the program of a row's run; the name of the kernel if the folder has no file of programs.
    #[must_use]
    pub fn program<'a>(&'a self, row: &'a Row) -> &'a str {
        match self.runs.get(&row.run) {
            Some(run) => self.find_program(run).ok().flatten().map_or(&run.program, |program| &program.program),
            None => &row.run,
        }
    }

    /// Returns the part of a row. One that compares two programs checks the model if either does, since its value depends on
    /// both. Without a file of programs, every row does.
    #[must_use]
    pub fn part(&self, row: &Row) -> Part {
        let part = |name: &str| {
            let program = self.runs.get(name).and_then(|run| self.find_program(run).ok().flatten());
            program.map_or(Part::Check, |program| program.part)
        };
        row.runs().map(part).max().unwrap_or(Part::Check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: &str = "run,program,arguments,options,suite\n\
        plain,triad,n=8 form=plain,,quick\n\
        wide,triad,n=8 form=wide,,quick\n\
        copy,copy,n=8,,quick\n";
    const ROWS: &str = "row,what,run,before,simulated,measured,unit,tolerance,error,gap,fitted,source\n\
        r-1,time,plain,,seconds,1,s,5,0,,FITTED,here\n\
        r-2,time,wide,,seconds,1,s,5,0,,,here\n\
        r-3,gain,plain,wide,seconds/before_seconds,1,x,5,0,,,here\n";
    const TABLE: &str = "program,kernel,shape,part,mechanism\n\
        triad,triad,,fit,L1\n\
        wide,triad,form=wide,check,L2\n\
        triad,copy,,fit,L1\n";

    /// Returns the suite of these files.
    fn suite(table: &str, fitted: &str) -> Result<Suite, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("runs.csv", RUNS);
        write("rows.csv", &ROWS.replace("FITTED", fitted));
        if !table.is_empty() {
            write(PROGRAMS, table);
        }
        Suite::read(folder.path())
    }

    fn row<'a>(suite: &'a Suite, name: &str) -> &'a Row {
        let rows = suite.families.iter().flat_map(|family| &family.rows);
        rows.map(|(row, _)| row).find(|row| row.row == name).expect("a row")
    }

    #[test]
    fn a_run_belongs_to_the_line_that_names_most_of_its_arguments() {
        let suite = suite(TABLE, "tlb.walk_extra").expect("valid files");
        assert_eq!(["r-1", "r-2"].map(|name| suite.program(row(&suite, name))), ["triad", "wide"]);
        assert_eq!(["r-1", "r-2"].map(|name| suite.part(row(&suite, name))), Part::ALL);
    }

    #[test]
    fn a_row_of_two_programs_checks_the_model_if_one_of_them_does() {
        let suite = suite(TABLE, "").expect("valid files");
        assert_eq!(suite.part(row(&suite, "r-3")), Part::Check);
    }

    #[test]
    fn a_fit_to_a_program_that_checks_is_refused() {
        let message = suite(&TABLE.replace("fit", "check"), "tlb.walk_extra").expect_err("a fit to a check");
        assert!(message.contains("row 'r-1'") && message.contains("'triad' belongs to check"), "{message}");
        assert!(suite("", "tlb.walk_extra").is_err(), "without a table every row checks");
        assert!(suite("", "").is_ok());
    }

    #[test]
    fn every_run_has_one_program() {
        let message = suite(&TABLE.replace("copy", "other"), "").expect_err("no line");
        assert!(message.contains("describes run 'copy'"), "{message}");
        let message = suite(&format!("{TABLE}b,triad,n=8,check,L1\n"), "").expect_err("two lines");
        assert!(message.contains("'wide' and 'b'") || message.contains("'b' and"), "{message}");
    }

    #[test]
    fn a_program_is_wholly_in_one_part() {
        let message = suite(&TABLE.replace("copy,,fit", "copy,,check"), "").expect_err("both parts");
        assert!(message.contains("programs.csv:4") && message.contains("'triad' belongs to fit"), "{message}");
    }
}
