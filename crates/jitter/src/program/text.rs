//! The text form of a program: comma-separated values that people can read and edit.

use std::fmt::Write as _;

use super::{Call, Collective, Fault, MOST_RANKS, MOST_STEPS, Program, Rank, Schedule, Step};

/// First line: what the file is, and the version of the format.
const FORMAT: &str = "fxscope program";
const VERSION: &str = "1";
/// Names of the columns.
const COLUMNS: &str = "rank,compute_ns,call,bytes,partner,copy_ns";
/// Calls that are not collectives.
const SEND: &str = "send";
const SYNCHRONOUS: &str = "ssend";
const RECEIVE: &str = "recv";
const END: &str = "end";

/// A line with content, and its number.
type Line<'a> = (usize, &'a str);

impl Program {
    /// Parses the text form: a line `fxscope program,1`, a line `threads,N`, a line with the names of the columns, then
    /// the calls of each rank in their order. Empty lines and lines that start with `#` are ignored.
    ///
    /// | Column | Meaning |
    /// |---|---|
    /// | `rank` | From 0; lines of different ranks may be mixed |
    /// | `compute_ns` | Computation before the call |
    /// | `call` | `send`; `ssend`, which waits for the receiver; `recv`; a collective; or `end` after the last call |
    /// | `bytes` | Of the message, or what this rank contributes to a collective |
    /// | `partner` | The rank sent to or received from |
    /// | `copy_ns` | Time in the call once all that it waits for is there |
    ///
    /// # Errors
    /// The line, what is wrong with it, and what to do.
    pub fn parse(text: &str) -> Result<Program, String> {
        let all = text.lines().enumerate().map(|(i, line)| (i + 1, line.trim()));
        let mut lines = all.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        version(lines.next())?;
        let threads = threads(lines.next())?;
        columns(lines.next())?;
        let mut reading = Reading::default();
        for (number, line) in lines {
            reading.line(number, line).map_err(|what| format!("line {number}: {what}"))?;
        }
        let program = Program { threads, ranks: reading.ranks };
        Schedule::new(&program).map_err(|fault| reading_fault(&reading.numbers, &fault))?;
        Ok(program)
    }

    /// Returns the text form.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{FORMAT},{VERSION}\nthreads,{}\n{COLUMNS}\n", self.threads);
        for (number, rank) in self.ranks.iter().enumerate() {
            for step in &rank.steps {
                let (call, bytes, partner) = match step.call {
                    Call::Send { to, bytes } => (SEND, Some(bytes), Some(to)),
                    Call::SynchronousSend { to, bytes } => (SYNCHRONOUS, Some(bytes), Some(to)),
                    Call::Receive { from } => (RECEIVE, None, Some(from)),
                    Call::Collective { kind, bytes } => (kind.name(), Some(bytes), None),
                };
                let text = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
                let (bytes, partner) = (text(bytes), text(partner.map(u64::from)));
                let _ = writeln!(out, "{number},{},{call},{bytes},{partner},{}", step.compute, step.copy);
            }
            let _ = writeln!(out, "{number},{},{END},,,", rank.rest);
        }
        out
    }
}

fn version(line: Option<Line>) -> Result<(), String> {
    let (number, line) = line.ok_or_else(|| format!("the file is empty; it must begin with '{FORMAT},{VERSION}'"))?;
    match line.split_once(',').map(|(format, version)| (format.trim(), version.trim())) {
        Some((FORMAT, VERSION)) => Ok(()),
        Some((FORMAT, version)) => {
            Err(format!("line {number}: version '{version}'; this program reads version {VERSION}"))
        }
        _ => Err(format!("line {number}: the first line of a program must be '{FORMAT},{VERSION}'")),
    }
}

fn threads(line: Option<Line>) -> Result<u32, String> {
    let threads = line.and_then(|(_, line)| line.strip_prefix("threads,")?.trim().parse().ok());
    threads.ok_or_else(|| {
        let place = line.map_or("the second line".to_owned(), |(number, _)| format!("line {number}"));
        format!("{place}: expected 'threads,N', the number of threads of each rank")
    })
}

fn columns(line: Option<Line>) -> Result<(), String> {
    match line {
        Some((_, line)) if line.replace(' ', "") == COLUMNS => Ok(()),
        Some((number, _)) => Err(format!("line {number}: expected the names of the columns, '{COLUMNS}'")),
        None => Err(format!("the third line must have the names of the columns, '{COLUMNS}'")),
    }
}

/// Ranks read so far.
#[derive(Default)]
struct Reading {
    ranks: Vec<Rank>,
    /// For each rank, the line of each call, and that of its end if there is one.
    numbers: Vec<Vec<usize>>,
    ended: Vec<bool>,
    steps: usize,
}

impl Reading {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [rank, compute, call, bytes, partner, copy] = fields[..] else {
            return Err(format!("{} fields, not the 6 of '{COLUMNS}'", fields.len()));
        };
        let rank = whole("rank", rank)?;
        if rank >= MOST_RANKS as u64 {
            return Err(format!("rank {rank}; ranks are numbered from 0, and there are at most {MOST_RANKS}"));
        }
        let rank = rank as usize;
        self.grow(rank + 1);
        if self.ended[rank] {
            return Err(format!("rank {rank} has ended before; move this line before its '{END}'"));
        }
        let compute = whole("compute_ns", compute)?;
        self.numbers[rank].push(number);
        if call == END {
            empty(call, [("bytes", bytes), ("partner", partner), ("copy_ns", copy)])?;
            (self.ranks[rank].rest, self.ended[rank]) = (compute, true);
            return Ok(());
        }
        if self.steps == MOST_STEPS {
            return Err(format!("more than {MOST_STEPS} calls; shorten the program"));
        }
        self.steps += 1;
        let call = read_call(call, bytes, partner)?;
        self.ranks[rank].steps.push(Step { compute, call, copy: whole("copy_ns", copy)? });
        Ok(())
    }

    fn grow(&mut self, ranks: usize) {
        if ranks > self.ranks.len() {
            self.ranks.resize_with(ranks, Rank::default);
            self.numbers.resize_with(ranks, Vec::new);
            self.ended.resize(ranks, false);
        }
    }
}

fn read_call(call: &str, bytes: &str, partner: &str) -> Result<Call, String> {
    let rank = || u32::try_from(whole("partner", partner)?).map_err(|_| format!("there is no rank {partner}"));
    match call {
        SEND => Ok(Call::Send { to: rank()?, bytes: whole("bytes", bytes)? }),
        SYNCHRONOUS => Ok(Call::SynchronousSend { to: rank()?, bytes: whole("bytes", bytes)? }),
        RECEIVE => {
            empty(call, [("bytes", bytes)])?;
            Ok(Call::Receive { from: rank()? })
        }
        _ => {
            let kind = Collective::NAMES.iter().find(|(name, _)| *name == call).map(|(_, kind)| *kind);
            let names = || Collective::NAMES.map(|(name, _)| name).join(", ");
            let kind = kind.ok_or_else(|| {
                format!("there is no call '{call}'; calls are {SEND}, {SYNCHRONOUS}, {RECEIVE}, {}, {END}", names())
            })?;
            empty(call, [("partner", partner)])?;
            Ok(Call::Collective { kind, bytes: if bytes.is_empty() { 0 } else { whole("bytes", bytes)? } })
        }
    }
}

fn whole(column: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{column} is '{text}'; it must be a whole number, 0 or more"))
}

/// Checks that some columns of a call are empty.
fn empty<const N: usize>(call: &str, columns: [(&str, &str); N]) -> Result<(), String> {
    match columns.iter().find(|(_, text)| !text.is_empty()) {
        Some((column, text)) => Err(format!("{column} is '{text}'; leave it empty for '{call}'")),
        None => Ok(()),
    }
}

/// Describes a fault by its line.
fn reading_fault(numbers: &[Vec<usize>], fault: &Fault) -> String {
    let own = numbers.get(fault.rank).map(Vec::as_slice).unwrap_or_default();
    match own.get(fault.step).or(own.last()) {
        Some(line) => format!("line {line}: {}", fault.what),
        None if numbers.is_empty() => "the program has no calls; add lines for its ranks".to_owned(),
        None => format!("rank {} has no line: {}", fault.rank, fault.what),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "fxscope program,1\n# Two ranks.\nthreads,2\nrank,compute_ns,call,bytes,partner,copy_ns\n\
        0,100,send,64,1,5\n0,0,allreduce,8,,20\n0,7,end,,,\n\n1,300,recv,,0,9\n1,10,allreduce,8,,20\n1,0,end,,,\n";

    #[test]
    fn a_program_survives_its_text_form() {
        let program = Program::parse(TWO).expect("a program");
        assert_eq!((program.threads, program.ranks.len(), program.steps()), (2, 2, 4));
        assert_eq!(program.ranks[0].steps[0], Step { compute: 100, call: Call::Send { to: 1, bytes: 64 }, copy: 5 });
        assert_eq!(Program::parse(&program.text()).expect("a program"), program);
    }

    #[test]
    fn bad_lines_are_refused_with_their_number_and_what_to_do() {
        for (from, to, why) in [
            ("fxscope program,1", "fxscope program,2", "line 1: version '2'"),
            ("fxscope program,1\n", "", "line 2: the first line of a program must be"),
            ("threads,2", "threads,two", "line 3: expected 'threads,N'"),
            ("threads,2", "threads,0", "1 to 65535 cores"),
            ("copy_ns", "copy", "line 4: expected the names"),
            ("0,100,send,64,1,5", "0,100,send,64,1", "line 5: 5 fields"),
            ("0,100,send,64,1,5", "0,-100,send,64,1,5", "line 5: compute_ns is '-100'"),
            ("0,100,send,64,1,5", "0,100,send,64,2,5", "line 5: there is no rank 2; ranks are 0 to 1"),
            ("0,100,send,64,1,5", "0,100,sent,64,1,5", "line 5: there is no call 'sent'; calls are send,"),
            ("0,100,send,64,1,5", "5000,100,send,64,1,5", "line 5: rank 5000"),
            ("0,100,send,64,1,5", "0,99999999999999999,send,64,1,5", "line 5: 99999999999999999 ns; a day"),
            ("0,100,send,64,1,5\n", "", "line 8: it waits for a message of rank 0"),
            ("0,100,send,64,1,5", "0,100,ssend,64,0,5", "line 5: a rank that waits for itself"),
            ("1,300,recv,,0,9", "1,300,recv,64,0,9", "line 9: bytes is '64'; leave it empty for 'recv'"),
            ("1,10,allreduce", "1,10,barrier", "line 10: rank 1 is at barrier, while rank 0 is at allreduce"),
            ("1,10,allreduce,8,,20\n", "", "line 10: rank 1 is at its end, while"),
            ("1,300,recv", "1,0,end,,,\n1,300,recv", "line 10: rank 1 has ended before"),
        ] {
            assert!(TWO.contains(from), "{from}");
            let error = Program::parse(&TWO.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(why), "{to:?}: {error}");
        }
        let header: String = TWO.lines().take(4).map(|line| format!("{line}\n")).collect();
        assert!(Program::parse(&header).expect_err("no rank").contains("no calls"));
        assert!(Program::parse("").expect_err("empty").contains("is empty"));
    }
}
