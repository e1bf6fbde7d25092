//! One file: the counts of one pass.

use std::collections::HashMap;
use std::sync::Arc;

use csv::{ByteRecord, ReaderBuilder};
use fxscope_pmu::CLOCKS;
use fxscope_record::{ALL, Counts, Names, Thread};
use memchr::{memchr, memchr_iter};

use crate::join::{Identity, Pass, PassRegion};
use crate::losses::Losses;
use crate::number::Marks;
use crate::{FileError, Machine, Options, text};

/// Largest plausible count: more than a processor counts in a year.
const MOST: u64 = 1 << 56;
/// Supported version of the files.
const CSV_VERSION: u64 = 2;
/// Headings of columns that are not events, in order; the last ones are the [`CLOCKS`] of records.
const HEADINGS: [&str; 9] =
    ["Level", "Spawn", "Process", "Thread", "Region_name", "Region_number", "Call", "CNTVCT", "PMCCNTR"];
/// The place of a region's name in a line of counts.
const NAME: usize = 5;
/// Implausible number of cycles per timer tick.
const ABSURD_CYCLES_PER_TICK: u64 = 1_000;
/// Minimum number of ticks for which the ratio to cycles is checked.
const ENOUGH_TICKS: u64 = 1_000;

/// Reads one file, keeping nothing of its contents.
///
/// # Errors
/// The error and its line.
pub(super) fn parse<'a>(
    file: &'a str,
    bytes: &[u8],
    machine: &'a Machine,
    options: &Options,
) -> Result<Pass<'a>, FileError> {
    let bytes = text::unmarked(bytes);
    let mut reader = Reader::new(file, machine, options);
    reader.mark = mark(&bytes);
    // Quoted fields may contain commas and line ends; fapp writes none.
    if memchr(b'"', &bytes).is_some() {
        quoted(&mut reader, &bytes)?
    } else {
        plain(&mut reader, &bytes)?
    }
    reader.finish()
}

/// The character between fields: fapp's comma, or that of a spreadsheet that saved the file.
fn mark(bytes: &[u8]) -> u8 {
    let line = &bytes[..memchr(b'\n', bytes).unwrap_or(bytes.len())];
    line.iter().copied().find(|byte| matches!(byte, b',' | b';' | b'\t')).unwrap_or(b',')
}

/// Reads the lines of a file without quotes.
fn plain(reader: &mut Reader, bytes: &[u8]) -> Result<(), FileError> {
    let mut fields: Vec<&[u8]> = Vec::new();
    let mut begin = 0;
    while begin < bytes.len() {
        let rest = &bytes[begin..];
        let line = &rest[..memchr(b'\n', rest).unwrap_or(rest.len())];
        begin += line.len() + 1;
        reader.line += 1;
        fields.clear();
        let mut first = 0;
        for at in memchr_iter(reader.mark, line) {
            fields.push(line[first..at].trim_ascii());
            first = at + 1;
        }
        fields.push(line[first..].trim_ascii());
        take_padded(reader, &fields)?;
    }
    Ok(())
}

/// Reads a line that a spreadsheet may have padded with empty fields.
fn take_padded(reader: &mut Reader, fields: &[&[u8]]) -> Result<(), FileError> {
    match fields.iter().rposition(|field| !field.is_empty()) {
        Some(last) => reader.take(&fields[..=last]),
        None => Ok(()),
    }
}

/// Reads the lines of a file with quoted fields.
fn quoted(reader: &mut Reader, bytes: &[u8]) -> Result<(), FileError> {
    let mut lines = ReaderBuilder::new().delimiter(reader.mark).has_headers(false).flexible(true).from_reader(bytes);
    let mut record = ByteRecord::new();
    loop {
        match lines.read_byte_record(&mut record) {
            Ok(false) => return Ok(()),
            Ok(true) => {}
            Err(e) => {
                let line = e.position().map(|position| position.line() as usize);
                return Err(FileError::of(reader.file, line, format!("is not a line of CSV ({e})")));
            }
        }
        reader.line = record.position().map_or(0, |position| position.line() as usize);
        take_padded(reader, &record.iter().map(<[u8]>::trim_ascii).collect::<Vec<_>>())?;
    }
}

/// Meaning of a column of counts.
#[derive(Clone, Copy)]
enum Column {
    Unused,
    /// The index of its name among the pass's names.
    Name(usize),
}

struct Reader<'a> {
    file: &'a str,
    machine: &'a Machine,
    /// The character between fields.
    mark: u8,
    line: usize,
    constants: Vec<(&'static str, f64)>,
    threads: Vec<Thread>,
    cmgs: Vec<Option<u32>>,
    places: HashMap<(u32, u32), usize>,
    names: Arc<Names>,
    /// Calls, CNTVCT, PMCCNTR, then the events.
    columns: Vec<Column>,
    /// The indices of calls, CNTVCT and PMCCNTR among the names.
    clocks: [usize; 3],
    /// The index of the thread expected in the next line.
    next: usize,
    regions: Vec<PassRegion>,
    by_name: HashMap<(Vec<u8>, Vec<u8>), usize>,
    /// The region of the previous line, which most lines share.
    last: Option<(Vec<u8>, Vec<u8>, usize)>,
    losses: Losses,
    /// The encoding that names have, where they are no Unicode.
    encoding: Option<String>,
}

impl<'a> Reader<'a> {
    fn new(file: &'a str, machine: &'a Machine, options: &Options) -> Reader<'a> {
        Reader {
            file,
            machine,
            mark: b',',
            line: 0,
            constants: Vec::new(),
            threads: Vec::new(),
            cmgs: Vec::new(),
            places: HashMap::new(),
            names: Arc::default(),
            columns: Vec::new(),
            clocks: [0; 3],
            next: 0,
            regions: Vec::new(),
            by_name: HashMap::new(),
            last: None,
            losses: Losses::new(options.strict),
            encoding: None,
        }
    }

    fn error(&self, what: impl Into<String>) -> FileError {
        FileError::of(self.file, Some(self.line), what.into())
    }

    fn take(&mut self, fields: &[&[u8]]) -> Result<(), FileError> {
        match field(fields, 0) {
            b"FAPP-cpupa" => self.counts(fields),
            b"FAPP-core" => self.core(fields),
            b"FAPP-info" => self.info(fields),
            b"LABEL-FAPP-cpupa" => self.headings(fields),
            tag if tag.starts_with(b"FAPP-") || tag.starts_with(b"LABEL-FAPP-") => Ok(()),
            tag => {
                let tag = String::from_utf8_lossy(&tag[..tag.len().min(40)]);
                Err(self.error(format!("'{tag}' starts no line of fapp's CSV; are these files of another tool?")))
            }
        }
    }

    fn info(&mut self, fields: &[&[u8]]) -> Result<(), FileError> {
        match field(fields, 1) {
            b"CSV version" => match self.number(fields, 2, "CSV version")? {
                CSV_VERSION => {}
                other => {
                    return Err(self.error(format!("CSV version {other}; this reads version {CSV_VERSION}")));
                }
            },
            b"Timer clock frequency" => self.constant(fields, "timer_hz", 1_000_000..=10_000_000_000)?,
            b"Vector length" => self.constant(fields, "vector_bits", 128..=2048)?,
            _ => {}
        }
        Ok(())
    }

    fn constant(
        &mut self,
        fields: &[&[u8]],
        name: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<(), FileError> {
        let value = self.number(fields, 2, name)?;
        if !range.contains(&value) {
            let what = format!("{name} is {value}; it lies between {} and {}", range.start(), range.end());
            return Err(self.error(what));
        }
        self.constants.push((name, value as f64));
        Ok(())
    }

    fn core(&mut self, fields: &[&[u8]]) -> Result<(), FileError> {
        if field(fields, 6) == b"-" {
            let what = "a thread that is bound to no core: its CMG is not known; bind threads and measure again";
            return Err(self.error(what));
        }
        let mut number = |column: usize, name: &str| -> Result<u32, FileError> {
            let number = self.number(fields, column, name)?;
            number.try_into().map_err(|_| self.error(format!("{name} is {number}, which is too large")))
        };
        let thread = Thread {
            process: number(2, "process")?,
            thread: number(3, "thread")?,
            node: number(4, "node")?,
            cpu: number(6, "core")?,
        };
        let cmg = number(5, "CMG")?;
        if self.places.insert((thread.process, thread.thread), self.threads.len()).is_some() {
            let what = format!("a second core for thread {} of process {}", thread.thread, thread.process);
            return Err(self.error(what));
        }
        self.threads.push(thread);
        self.cmgs.push(Some(cmg));
        Ok(())
    }

    fn headings(&mut self, fields: &[&[u8]]) -> Result<(), FileError> {
        if !self.columns.is_empty() {
            return Err(self.error("a second line of headings; give each pass in a separate file"));
        }
        for (i, heading) in HEADINGS.iter().enumerate() {
            let found = field(fields, i + 1);
            if found != heading.as_bytes() {
                let found = String::from_utf8_lossy(found);
                return Err(self.error(format!("column {} is '{found}' where {heading} belongs", i + 2)));
            }
        }
        let mut names: Vec<Option<String>> = CLOCKS.iter().map(|name| Some((*name).to_owned())).collect();
        for code in fields.iter().copied().skip(1 + HEADINGS.len()) {
            names.push(self.event(code)?);
        }
        if let Some(twice) = (0..names.len()).find(|&i| names[i].is_some() && names[..i].contains(&names[i])) {
            let name = names[twice].clone().unwrap_or_default();
            return Err(self.error(format!("{name} has two columns")));
        }
        self.names = Arc::new(names.iter().flatten().cloned().collect());
        let place = |name: &Option<String>| name.as_ref().and_then(|name| self.names.index(name));
        self.clocks = CLOCKS.map(|name| self.names.index(name).unwrap_or(0));
        self.columns = names.iter().map(|name| place(name).map_or(Column::Unused, Column::Name)).collect();
        Ok(())
    }

    /// The name of the event with a code; `None` for an unused column.
    fn event(&mut self, code: &[u8]) -> Result<Option<String>, FileError> {
        if code == b"-" {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(code);
        let number = text.strip_prefix("0x").and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let number = number.ok_or_else(|| self.error(format!("'{text}' is not an event code such as 0x0011")))?;
        if let Some(event) = self.machine.pmu.events.iter().find(|e| e.number == Some(number)) {
            return Ok(Some(event.name.clone()));
        }
        Ok(Some(format!("r{number:04x}")))
    }

    fn counts(&mut self, fields: &[&[u8]]) -> Result<(), FileError> {
        if field(fields, 1) != b"Thread" {
            return Ok(());
        }
        if self.columns.is_empty() {
            return Err(self.error("counts before the line of headings (LABEL-FAPP-cpupa)"));
        }
        let wanted = 1 + HEADINGS.len() - CLOCKS.len() + self.columns.len();
        if let Some(more) = fields.len().checked_sub(wanted).filter(|&more| more > 0) {
            // The name of the region contains the character between fields.
            let (name, after) = (NAME..=NAME + more, NAME + more + 1);
            let name = fields[name].join(&self.mark);
            return self.counts(&[&fields[..NAME], &[&name[..]], &fields[after..]].concat());
        }
        if fields.len() != wanted {
            return Err(self.error(format!("{} columns where the headings have {wanted}", fields.len())));
        }
        if self.number(fields, 2, "spawn")? != 0 {
            return Err(self.error("a spawned process; measure programs that do not spawn processes"));
        }
        let (process, thread) = (self.number(fields, 3, "process")?, self.number(fields, 4, "thread")?);
        let Some(place) = self.place(process, thread) else {
            return Err(self.error(format!("thread {thread} of process {process} has no line FAPP-core")));
        };
        let region = self.region(fields);
        let mut values = std::mem::take(&mut self.regions[region].values);
        let calls = self.read_row(fields, &mut values)?;
        let region = &mut self.regions[region];
        region.values = values;
        region.threads.push(place);
        region.calls = region.calls.max(calls);
        Ok(())
    }

    /// The index of a thread: usually the one after that of the previous line.
    fn place(&mut self, process: u64, thread: u64) -> Option<usize> {
        let is = |at: usize| {
            self.threads.get(at).is_some_and(|t| (u64::from(t.process), u64::from(t.thread)) == (process, thread))
        };
        let place = match self.next {
            next if is(next) => next,
            _ if is(0) => 0,
            _ => *self.places.get(&(u32::try_from(process).ok()?, u32::try_from(thread).ok()?))?,
        };
        self.next = place + 1;
        Some(place)
    }

    /// Appends the numbers of a line in the order of the names; returns the number of calls of the region.
    fn read_row(&mut self, fields: &[&[u8]], values: &mut Vec<u64>) -> Result<u64, FileError> {
        let before = values.len();
        values.resize(before + self.names.len(), Counts::ABSENT);
        let row = &mut values[before..];
        let first = 1 + HEADINGS.len() - CLOCKS.len();
        for i in 0..self.columns.len() {
            let Column::Name(place) = self.columns[i] else { continue };
            row[place] = self.number(fields, first + i, "count")?;
        }
        let [calls, ticks, cycles] = self.clocks.map(|place| row[place]);
        if ticks >= ENOUGH_TICKS && cycles / ticks >= ABSURD_CYCLES_PER_TICK {
            return Err(self.error(format!("{cycles} cycles in {ticks} timer ticks are impossible")));
        }
        Ok(calls)
    }

    /// The index of a line's region.
    fn region(&mut self, fields: &[&[u8]]) -> usize {
        let (name, number) = (field(fields, 5), field(fields, 6));
        if let Some((last_name, last_number, place)) = &self.last
            && last_name == name
            && last_number == number
        {
            return *place;
        }
        let key = (name.to_vec(), number.to_vec());
        let place = *self.by_name.entry(key.clone()).or_insert(self.regions.len());
        if place == self.regions.len() {
            let number = String::from_utf8_lossy(number);
            let decoded = text::decode(name);
            self.encoding = self.encoding.take().or_else(|| decoded.note());
            let name = decoded.text;
            // fapp's name for the whole program.
            let name = if name == ALL && number == "0" { ALL.to_owned() } else { format!("{name}, {number}") };
            // Most regions have as many threads as the previous one.
            let like = self.regions.last().map_or((0, 0), |last| (last.threads.len(), last.values.len()));
            let (threads, values) = (Vec::with_capacity(like.0), Vec::with_capacity(like.1));
            self.regions.push(PassRegion { name, calls: 0, threads, values });
        }
        self.last = Some((key.0, key.1, place));
        place
    }

    /// An integer in a column; `name` is used in messages.
    fn number(&mut self, fields: &[&[u8]], column: usize, name: &str) -> Result<u64, FileError> {
        let text = fields.get(column).ok_or_else(|| self.error(format!("{name} is missing")))?;
        match whole(text).map_or_else(|| self.rounded(text, column), |value| Ok(Some(value)))? {
            Some(value) if value <= MOST => Ok(value),
            Some(value) => Err(self.error(format!("{name} is {value}, more than a counter reaches in a year"))),
            None => {
                let text = String::from_utf8_lossy(&text[..text.len().min(40)]);
                let negative = text.starts_with('-') && text.len() > 1;
                let why = if negative { "is negative" } else { "is not an integer" };
                Err(self.error(format!("{name} '{text}' {why}")))
            }
        }
    }

    /// A number that a spreadsheet has written with an exponent or decimals; `None` if it is none.
    fn rounded(&mut self, text: &[u8], column: usize) -> Result<Option<u64>, FileError> {
        let Some(text) = std::str::from_utf8(text).ok().filter(|text| Marks::default().count(text).is_ok()) else {
            return Ok(None);
        };
        let place = column.checked_sub(1 + HEADINGS.len() - CLOCKS.len());
        let name = place.and_then(|place| match self.columns.get(place) {
            Some(Column::Name(name)) => self.names.iter().nth(*name),
            _ => None,
        });
        let name = name.unwrap_or("a number").to_owned();
        let (file, line) = (self.file, self.line);
        let count = self.losses.count(Marks::default(), text, &name);
        count.map(Some).map_err(|what| FileError::of(file, Some(line), what))
    }

    fn finish(mut self) -> Result<Pass<'a>, FileError> {
        let missing = |what: &str| Err(FileError::of(self.file, None, what.to_owned()));
        if self.columns.is_empty() {
            return missing("has no line LABEL-FAPP-cpupa; give the files that fapppx -A -Icpupa -tcsv writes");
        }
        for (name, title) in [("timer_hz", "Timer clock frequency"), ("vector_bits", "Vector length")] {
            if !self.constants.iter().any(|c| c.0 == name) {
                return missing(&format!("has no line FAPP-info,{title}"));
            }
        }
        if self.regions.is_empty() {
            return missing("has no counts of threads (lines FAPP-cpupa,Thread)");
        }
        for region in &mut self.regions {
            sort(region, &self.threads, self.names.len());
            if let Some(twice) = region.threads.windows(2).find(|pair| pair[0] == pair[1]) {
                let Thread { process, thread, .. } = self.threads[twice[0]];
                let what = format!("thread {thread} of process {process} has two lines for region '{}'", region.name);
                return Err(FileError::of(self.file, None, what));
            }
        }
        let Reader { file, constants, names, threads, cmgs, regions, losses, encoding, .. } = self;
        let notes = losses.notes().chain(encoding).collect();
        let identity =
            |(t, &place): (&Thread, &Option<u32>)| Identity { process: t.process, thread: t.thread.into(), place };
        let identities = threads.iter().zip(&cmgs).map(identity).collect();
        Ok(Pass {
            file,
            command: None,
            constants,
            names,
            threads,
            identities,
            cmgs,
            regions,
            intervals: Vec::new(),
            notes,
        })
    }
}

/// A field of a line; empty if missing.
fn field<'f>(fields: &[&'f [u8]], place: usize) -> &'f [u8] {
    fields.get(place).copied().unwrap_or_default()
}

/// Parses decimal digits.
fn whole(text: &[u8]) -> Option<u64> {
    /// This many digits always fit.
    const SAFE: usize = 19;
    if text.is_empty() || text.len() > SAFE + 1 || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let (head, tail) = text.split_at(text.len().min(SAFE));
    let value = head.iter().fold(0, |n, b| n * 10 + u64::from(b - b'0'));
    tail.iter().try_fold(value, |n, b| n.checked_mul(10)?.checked_add(u64::from(b - b'0')))
}

/// Sorts the rows of a region by process and thread.
fn sort(region: &mut PassRegion, threads: &[Thread], columns: usize) {
    let key = |place: &usize| (threads[*place].process, threads[*place].thread);
    if region.threads.is_sorted_by_key(key) {
        return;
    }
    let mut rows: Vec<usize> = (0..region.threads.len()).collect();
    rows.sort_by_key(|&row| key(&region.threads[row]));
    region.values = rows.iter().flat_map(|row| &region.values[row * columns..][..columns]).copied().collect();
    region.threads = rows.iter().map(|&row| region.threads[row]).collect();
}
