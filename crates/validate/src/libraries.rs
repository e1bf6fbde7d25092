//! Programs that call real libraries: Debian's packages, run unmodified.

use std::path::{Path, PathBuf};

use crate::suite::{Run, Suite};

/// The name of the program in `runs.csv` that calls libraries. It is not among the kernels, since it needs those packages.
const PROGRAM: &str = "libraries";

/// A program, and the folder with the libraries that it calls.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// Name of the program in runs.
    name: String,
    program: PathBuf,
    root: PathBuf,
}

impl Libraries {
    /// Returns what `programs/libraries.sh` has prepared in a folder, packages in `root` and the program that calls them; `None` if it
    /// is not prepared.
    #[must_use]
    pub fn find(folder: &Path) -> Option<Libraries> {
        let root = folder.join("root");
        let is_complete = root.join(".complete").is_file();
        Libraries::of(PROGRAM, &folder.join("libraries.elf"), &root).filter(|_| is_complete)
    }

    /// Returns the program that runs call `name`, with the folder of its libraries; `None` if one of them is not there.
    #[must_use]
    pub fn of(name: &str, program: &Path, root: &Path) -> Option<Libraries> {
        let libraries = Libraries { name: name.to_owned(), program: program.to_owned(), root: root.to_owned() };
        (program.is_file() && root.is_dir()).then_some(libraries)
    }

    /// Returns whether a run executes the program.
    pub(crate) fn is_for(&self, run: &Run) -> bool {
        run.program == self.name
    }

    /// Returns the folder of the packages, for `fxscope run --sysroot`.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the program that calls the libraries.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the names of the libraries, which contain their versions, in order.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn versions(&self) -> Result<Vec<u8>, String> {
        let mut names = Vec::new();
        let folder = self.root.join("usr/lib/aarch64-linux-gnu");
        let serial = Some(folder.join("openblas-serial")).filter(|folder| folder.is_dir());
        for path in std::iter::once(folder).chain(serial) {
            let failed = |e: std::io::Error| format!("{}: {e}", path.display());
            for entry in std::fs::read_dir(&path).map_err(failed)? {
                names.push(entry.map_err(failed)?.file_name().into_encoded_bytes());
            }
        }
        names.sort();
        Ok(names.join(&b'\n'))
    }
}

impl Run {
    /// Returns whether it needs [`Libraries`].
    #[must_use]
    pub fn needs_libraries(&self) -> bool {
        self.program == PROGRAM
    }
}

impl Suite {
    /// Removes the rows that need libraries, and returns their number.
    pub fn leave_out_libraries(&mut self) -> usize {
        let Suite { families, runs, .. } = self;
        let needs = |name: &str| runs.get(name).is_some_and(Run::needs_libraries);
        let number = |families: &[crate::Family]| families.iter().map(|family| family.rows.len()).sum::<usize>();
        let all = number(families);
        for family in &mut *families {
            family.rows.retain(|(row, _)| !row.runs().any(needs));
        }
        families.retain(|family| !family.rows.is_empty());
        all - number(families)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_prepared_with_packages_and_program() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("usr/lib/aarch64-linux-gnu/openblas-serial")).expect("folders");
        std::fs::write(folder.path().join("libraries.elf"), "").expect("a file");
        assert!(Libraries::find(folder.path()).is_none(), "packages are incomplete");
        std::fs::write(root.join(".complete"), "").expect("a file");
        let libraries = Libraries::find(folder.path()).expect("prepared");
        std::fs::write(root.join("usr/lib/aarch64-linux-gnu/libz.so.1.2"), "").expect("a file");
        std::fs::write(root.join("usr/lib/aarch64-linux-gnu/liba.so.3"), "").expect("a file");
        assert_eq!(libraries.versions().expect("names"), b"liba.so.3\nlibz.so.1.2\nopenblas-serial");
    }

    #[test]
    fn rows_that_need_libraries_can_be_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
        write("runs.csv", "run,program,arguments,options,suite\na,libraries,daxpy 10 1,,full\nb,copy,,,quick\n");
        let head = "row,what,run,before,simulated,measured,unit,tolerance,error,gap,fitted,source\n";
        write("x.csv", &format!("{head}r-1,w,a,,seconds,1,s,5,0,,,here\n"));
        write(
            "y.csv",
            &format!("{head}r-2,w,b,,seconds,1,s,5,0,,,here\nr-3,w,b,a,seconds/before_seconds,1,x,5,0,,,here\n"),
        );
        let mut suite = Suite::read(folder.path()).expect("rows");
        assert_eq!(suite.leave_out_libraries(), 2);
        assert_eq!(suite.families.iter().map(|family| &*family.name).collect::<Vec<_>>(), ["y"]);
        assert_eq!(suite.families[0].rows.len(), 1);
    }
}
