//! What went wrong in a run, as text: which processes ended abnormally, and what each thread did when nothing could continue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use fxscope_linux::elf::{Image, Role};
use fxscope_linux::guest::PID;
use fxscope_linux::{Death, End, Frame, Guest, Waiting};
use fxscope_sim::mpi::{self, Kind, OpenCall};
use fxscope_sim::{NoProgress, Outcome};

use crate::MAX_PROGRAM_BYTES;
use crate::annotate::line_at;

/// Threads that a message shows, and frames of each.
const SHOWN_THREADS: usize = 64;
const SHOWN_FRAMES: usize = 12;

/// Describes each process that ended abnormally in a run of several, in the order in which they did.
pub(crate) fn failures(guest: &Guest) -> Vec<String> {
    let (deaths, more) = guest.deaths();
    let mut lines = Lines::of(guest);
    let mut failures: Vec<String> = deaths.iter().map(|death| failure(death, guest, &mut lines)).collect();
    if more > 0 {
        failures.push(format!("further processes that ended abnormally: {more}"));
    }
    failures
}

fn failure(death: &Death, guest: &Guest, lines: &mut Lines<'_>) -> String {
    let who = who(death.pid, guest, true);
    let how = match &death.end {
        End::Exit { code } => format!("ended with exit status {code}"),
        end => format!("was {end}"),
    };
    let sender = death.sender.map_or_else(String::new, |pid| format!(", sent by {}", self::who(pid, guest, true)));
    let place = lines.first_with_source(&death.stack).map_or_else(String::new, |place| format!(" ({place})"));
    let stack = lines.stack(&death.stack);
    format!("{who} {how}{place}{sender}\n    {stack}")
}

/// Describes a run of which all threads wait for something that cannot happen.
pub(crate) fn deadlock(threads: &[Waiting], outcome: &Outcome, guest: &Guest) -> String {
    let threads = threads_of(threads, outcome, guest);
    format!("deadlock: every thread waits for something that cannot happen{threads}")
}

/// Describes a run without progress.
pub(crate) fn no_progress(found: &NoProgress, outcome: &Outcome, guest: &Guest) -> String {
    let ms = found.for_ns as f64 / 1e6;
    let in_mpi = found.threads.iter().any(|thread| mpi::outermost(&thread.stack).is_some());
    let how = if in_mpi { "the ranks wait for one another in MPI" } else { "its threads wait for one another" };
    let threads = threads_of(&found.threads, outcome, guest);
    format!("no progress for {ms:.1} ms of simulated time: {how}, and nothing that they read changes{threads}")
}

/// Describes what threads do, each on lines of its own. Of a process with threads in MPI, or several others, only those in MPI and the
/// first one are shown.
fn threads_of(threads: &[Waiting], outcome: &Outcome, guest: &Guest) -> String {
    let mut lines = Lines::of(guest);
    let has_ranks = guest.family().iter().any(|member| member.rank.is_some());
    let shown = |thread: &&Waiting| !has_ranks || thread.tid == thread.pid || mpi::outermost(&thread.stack).is_some();
    let rank = |thread: &Waiting| guest.process_of_thread(thread.tid).and_then(|process| process.rank);
    let mut list: Vec<&Waiting> = threads.iter().filter(shown).collect();
    list.sort_by_key(|thread| (rank(thread).is_none(), rank(thread), thread.tid));
    let mut text = String::new();
    for thread in list.iter().take(SHOWN_THREADS) {
        let call = thread.tid.checked_sub(PID).and_then(|number| outcome.open_calls.get(&number));
        text += &format!("\n  {}", thread_text(thread, call, guest, &mut lines));
    }
    let more = threads.len() - list.len().min(SHOWN_THREADS);
    if more > 0 {
        text += &format!("\n  further threads, which wait as well: {more}");
    }
    text
}

fn thread_text(thread: &Waiting, call: Option<&OpenCall>, guest: &Guest, lines: &mut Lines<'_>) -> String {
    let mut who = who(thread.pid, guest, false);
    if thread.tid != thread.pid {
        who += &format!(", thread {}", thread.tid);
    }
    let waits = match &thread.waits_for {
        Some(what) => format!("waits for {what}"),
        None => "runs without effect".to_owned(),
    };
    let stack = lines.stack(&thread.stack);
    match mpi::outermost(&thread.stack) {
        None => format!("{who}: {waits}\n    {stack}"),
        Some(place) => {
            let name = thread.stack[place].function.as_deref().unwrap_or_default();
            let call = call.map_or_else(|| name.to_owned(), described);
            let caller = thread.stack.get(place + 1).map(|frame| format!(", called from {}", lines.place(frame)));
            format!("{who}: {call}{}; {waits}\n    {stack}", caller.unwrap_or_default())
        }
    }
}

/// Describes a call of MPI with what is known of its arguments.
fn described(call: &OpenCall) -> String {
    let direction = match call.kind {
        Kind::Receive => "from",
        _ => "to",
    };
    let partner = call.partner.map(|rank| format!("{direction} rank {rank}"));
    let bytes = call.bytes.map(|bytes| format!("{bytes} bytes"));
    let tag = call.tag.map(|tag| format!("tag {tag}"));
    let known: Vec<String> = [partner, bytes, tag].into_iter().flatten().collect();
    if known.is_empty() { call.name.to_owned() } else { format!("{} ({})", call.name, known.join(", ")) }
}

/// Names a process: by its rank, if it has one.
fn who(pid: u32, guest: &Guest, with_program: bool) -> String {
    let Some(member) = guest.process_of_thread(pid) else { return format!("process {pid}") };
    let path = String::from_utf8_lossy(&member.program);
    let program = Path::new(&*path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match member.rank {
        Some(rank) if with_program => format!("rank {rank} (process {pid}, {program})"),
        Some(rank) => format!("rank {rank}"),
        None => format!("process {pid} ({program})"),
    }
}

/// Source lines of the program's files, each read when it is first needed.
struct Lines<'a> {
    guest: &'a Guest,
    files: BTreeMap<PathBuf, Option<(Image, Loader)>>,
}

impl<'a> Lines<'a> {
    fn of(guest: &'a Guest) -> Lines<'a> {
        Lines { guest, files: BTreeMap::new() }
    }

    /// Returns the source line of a frame, if debug information has it.
    fn source(&mut self, frame: &Frame) -> Option<String> {
        let (path, place) = frame.file.as_ref()?;
        let path = self.guest.host_path(path);
        let known = self.files.entry(path).or_insert_with_key(|path| {
            let content = fxscope_host::read(path, MAX_PROGRAM_BYTES).ok()?;
            Some((Image::parse_as(&content, Role::Text).ok()?, Loader::new(path).ok()?))
        });
        let (image, lines) = known.as_ref()?;
        let (file, line) = line_at(lines, image.code_at(*place)?.checked_sub(image.bias())?)?;
        let name = Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned());
        Some(format!("{name}:{line}"))
    }

    /// Names the place of a frame: its function with the source line or the offset, else the file and the address.
    fn place(&mut self, frame: &Frame) -> String {
        match (&frame.function, self.source(frame), &frame.file) {
            (Some(name), Some(line), _) => format!("{name} ({line})"),
            (None, Some(line), _) => line,
            (None, None, Some((path, place))) => {
                let path = String::from_utf8_lossy(path);
                format!("{}+{place:#x}", path.rsplit('/').next().unwrap_or_default())
            }
            (Some(_), None, _) | (None, None, None) => frame.to_string(),
        }
    }

    /// Returns the source line of the innermost frame that has one.
    fn first_with_source(&mut self, stack: &[Frame]) -> Option<String> {
        stack.iter().find_map(|frame| self.source(frame))
    }

    fn stack(&mut self, stack: &[Frame]) -> String {
        let mut places: Vec<String> = stack.iter().take(SHOWN_FRAMES).map(|frame| self.place(frame)).collect();
        if stack.len() > SHOWN_FRAMES {
            places.push("…".to_owned());
        }
        format!("stack: {}", places.join(", "))
    }
}
