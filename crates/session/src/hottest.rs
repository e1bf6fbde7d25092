//! The hottest functions of a run, each with its hottest source line.

use std::collections::BTreeMap;
use std::path::Path;

use addr2line::Loader;
use fxscope_linux::elf::{Image, Role};
use fxscope_record::functions::omp_region_of;
use fxscope_record::{HotSpot, Run};
use fxscope_report::verdict::{Hot, SourceLine, hottest_functions};

use crate::MAX_PROGRAM_BYTES;
use crate::annotate::line_at;

/// Instructions of a function whose lines are looked up, those with most cycles.
const LOOKED_UP: usize = 256;
/// Largest source file that is read, bytes.
const MAX_SOURCE_BYTES: u64 = 16 << 20;
/// Longest text of a line that is kept, characters.
const MAX_LINE: usize = 200;
/// Extensions of source files. Debug information is part of the program, which must not choose just any file of the host.
const SOURCES: [&str; 25] = [
    "c", "h", "cc", "cpp", "cxx", "c++", "hh", "hpp", "hxx", "inl", "inc", "tcc", "f", "for", "ftn", "f77", "f90",
    "f95", "f03", "f08", "s", "sx", "rs", "jl", "ipp",
];

/// A file with code and debug information.
struct CodeLines {
    image: Image,
    lines: Loader,
}

impl CodeLines {
    /// Opens a file, unless it has changed since the run.
    fn open(path: &Path, digest: &str) -> Option<CodeLines> {
        let file = fxscope_host::read(path, MAX_PROGRAM_BYTES).ok()?;
        let image = Image::parse_as(&file, Role::Text).ok()?;
        (fxscope_record::digest(&file) == digest).then_some(())?;
        Some(CodeLines { image, lines: Loader::new(path).ok()? })
    }

    fn line(&self, place: u64) -> Option<(String, u32)> {
        line_at(&self.lines, self.image.code_at(place)?.checked_sub(self.image.bias())?)
    }
}

/// Returns the functions of a run with most cycles, each with its hottest line, as far as the files of the code and their sources are
/// still there.
#[must_use]
pub fn hottest(run: &Run) -> Vec<Hot> {
    let mut files: BTreeMap<u32, Option<CodeLines>> = BTreeMap::new();
    let mut functions = hottest_functions(run);
    for hot in &mut functions {
        hot.line = hottest_line(run, &hot.function, &mut files);
        hot.region_line = omp_region_of(&hot.function).and_then(|_| first_line(run, &hot.function, &mut files));
    }
    functions
}

/// The line of a function to which most of its cycles went.
fn hottest_line(run: &Run, function: &str, files: &mut BTreeMap<u32, Option<CodeLines>>) -> Option<SourceLine> {
    let mut spots: Vec<&HotSpot> = run.hot_spots.iter().filter(|spot| spot.function == function).collect();
    spots.sort_by_key(|spot| std::cmp::Reverse(spot.cycles));
    let mut cycles: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for spot in spots.into_iter().take(LOOKED_UP) {
        let Some((number, file)) = spot.file.and_then(|n| Some((n, run.files.get(n as usize)?))) else { continue };
        let code = files.entry(number).or_insert_with(|| CodeLines::open(Path::new(&file.path), &file.digest));
        if let Some(line) = code.as_ref().and_then(|code| code.line(spot.place)) {
            *cycles.entry(line).or_default() += spot.cycles;
        }
    }
    // The first of equally hot lines.
    let ((file, number), _) = cycles.into_iter().rev().max_by_key(|(_, cycles)| *cycles)?;
    let text = text_of(Path::new(&file), number);
    Some(SourceLine { file, number, text })
}

/// The line of the first instruction of a function.
fn first_line(run: &Run, function: &str, files: &mut BTreeMap<u32, Option<CodeLines>>) -> Option<u32> {
    let spot = run.hot_spots.iter().filter(|spot| spot.function == function).min_by_key(|spot| spot.offset)?;
    let (number, file) = spot.file.and_then(|n| Some((n, run.files.get(n as usize)?)))?;
    let code = files.entry(number).or_insert_with(|| CodeLines::open(Path::new(&file.path), &file.digest));
    code.as_ref()?.line(spot.place).map(|(_, line)| line)
}

/// The text of a line of a source file; `None` if it is not there, or no source file.
fn text_of(path: &Path, number: u32) -> Option<String> {
    // A link must not lead to a file of another kind.
    let path = path.canonicalize().ok()?;
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    SOURCES.contains(&extension.as_str()).then_some(())?;
    let text = fxscope_host::read(&path, MAX_SOURCE_BYTES).ok()?;
    let line = text.split(|&byte| byte == b'\n').nth(number.checked_sub(1)? as usize)?;
    let line: String = String::from_utf8_lossy(line).trim().chars().take(MAX_LINE).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_source_files_are_read_also_behind_links() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = |name: &str| folder.path().join(name);
        for name in ["a.c", "secret"] {
            std::fs::write(place(name), "first\n  second line\t\n\n").expect("written");
        }
        assert_eq!(text_of(&place("a.c"), 2).as_deref(), Some("second line"));
        assert_eq!([0, 3, 4, u32::MAX].map(|number| text_of(&place("a.c"), number)), [const { None }; 4]);
        std::os::unix::fs::symlink(place("secret"), place("b.c")).expect("linked");
        assert_eq!(
            [place("secret"), place("b.c"), place("absent.c")].map(|path| text_of(&path, 1)),
            [const { None }; 3]
        );
    }
}
