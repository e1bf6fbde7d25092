//! A pipeline trace as a file that is there as a whole, or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Seek as _};
use std::path::Path;

use fxscope_host::{OutputFile, write_error};

use crate::Window;
use crate::konata::Konata;

/// Number of instructions that are traced by default.
const INSTRUCTIONS: u64 = 10_000;

/// A trace being taken, and the file that will have it.
pub struct TraceFile {
    place: OutputFile,
    from: u64,
    instructions: u64,
    /// Written to an unnamed file, which disappears if the run is killed.
    konata: Konata<BufWriter<File>>,
}

impl TraceFile {
    /// Returns a trace of `instructions` executed instructions (`None`: 10,000) after the first `from`, for the file at `place`. Changes no
    /// file.
    ///
    /// # Errors
    /// The host's, when nothing can be written beside the file.
    pub fn new(place: OutputFile, from: u64, instructions: Option<u64>) -> io::Result<TraceFile> {
        let folder = place.path().parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let konata = Konata::new(BufWriter::new(tempfile::tempfile_in(folder)?));
        Ok(TraceFile { place, from, instructions: instructions.unwrap_or(INSTRUCTIONS), konata })
    }

    /// Returns the window of a run that it traces.
    pub fn window(&mut self) -> Window<'_> {
        Window::new(self.from, self.instructions, &mut self.konata)
    }

    /// Writes the file after the run: it holds either its old content or the whole trace.
    ///
    /// # Errors
    /// If the run ended before the window, or the file cannot be written.
    pub fn write(self) -> Result<(), String> {
        let path = self.place.path();
        if self.konata.rows() == 0 {
            return Err(format!(
                "--konata-from {}: the run ended before that, and {} was not written; choose a smaller number",
                self.from,
                path.display()
            ));
        }
        let copied = self.konata.finish().and_then(|out| {
            let mut trace = out.into_inner()?;
            trace.rewind()?;
            self.place.replace(|file| io::copy(&mut trace, file).map(drop))
        });
        copied.map_err(|error| format!("{}: {}", path.display(), write_error(&error)))
    }
}
