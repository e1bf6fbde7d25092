//! Reads the manual's notation for pipes and latencies.
//!
//! `/` separates micro-operations, `+` and `;` sequential flows, `,` independent flows, `|` alternatives, `&` pipes
//! used together; `Pipe(X, N)` is a flow issued N times, `NULL` a fixed bypass, `(…) x N` a repetition;
//! in latencies `[n]` names the micro-operation *n* places earlier that the flow behind it waits for, `NA` means none,
//! `n (a-b)` a range; `load_integer`, `load_short` and `load_long` stand for the machine's load-to-use latencies.

use crate::recipe::{Blocking, Dependence, Flow, LoadToUse, MAX_FLOWS, MAX_LATENCY, MAX_REPEAT, MAX_UOPS, Pipes, Uop};

/// Reads the `pipes`, `latency` and `blocking` cells of a row with `count` micro-operations.
///
/// # Errors
/// What is wrong with the cells, in words.
pub fn read_uops(pipes: &str, latency: &str, blocking: &str, count: usize) -> Result<Vec<Uop>, String> {
    let mut pipes = split_uops(pipes)?;
    let mut latencies = split_uops(latency)?;
    // Rows without pipes or latency (system registers, hints) still have their micro-operations.
    let pad = |cells: &mut Vec<String>| {
        if cells.len() == 1 && cells[0].is_empty() {
            cells.resize(count, String::new());
        }
    };
    pad(&mut pipes);
    pad(&mut latencies);
    if pipes.len() != count || latencies.len() != count {
        return Err(format!(
            "uops says {count}, but pipes has {} and latency {} micro-operations",
            pipes.len(),
            latencies.len()
        ));
    }
    let blocks = read_blocking(blocking, count)?;
    let mut uops: Vec<Uop> = Vec::with_capacity(count);
    let cells: Vec<_> = pipes.iter().zip(&latencies).zip(blocks).collect();
    for (k, &((pipes, latency), blocking)) in cells.iter().enumerate() {
        // Most are like the one before.
        uops.push(match k.checked_sub(1).filter(|&before| cells[before] == cells[k]) {
            Some(before) => uops[before].clone(),
            None => read_uop(pipes, latency, blocking)?,
        });
    }
    let wrong = |(k, uop): (usize, &Uop)| {
        uop.depends.iter().map(|d| d.places).find(|&d| d == 0 || d as usize > k).map(|d| (k, d))
    };
    match uops.iter().enumerate().find_map(wrong) {
        Some((k, d)) => Err(format!("micro-operation {} cannot depend on the one {d} places earlier", k + 1)),
        None => Ok(uops),
    }
}

fn read_blocking(text: &str, count: usize) -> Result<Vec<Blocking>, String> {
    let one = |t: &str| match t.trim() {
        "" | "not given" => Ok(Blocking::None),
        "P" => Ok(Blocking::Pipe),
        "E" => Ok(Blocking::Operation),
        other => Err(format!("blocking '{other}': P, E or nothing is expected")),
    };
    match text.strip_prefix("per-uop \"").and_then(|t| t.strip_suffix('"')) {
        None => Ok(vec![one(text)?; count]),
        Some(list) => {
            let mut cells = list.split('/').map(one).collect::<Result<Vec<_>, _>>()?;
            if cells.len() > count {
                return Err(format!("blocking lists {} micro-operations, the row has {count}", cells.len()));
            }
            // The manual leaves out trailing blanks, and leading ones of the first micro-operations.
            while cells.len() < count {
                cells.insert(0, Blocking::None);
            }
            Ok(cells)
        }
    }
}

/// Splits at `/` outside brackets and writes repetitions out.
fn split_uops(text: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for element in split(text, &['/']) {
        match repetition(element) {
            None => out.push(element.to_owned()),
            Some((prefix, inner, times)) => {
                let distances: Vec<&str> = prefix.trim_matches(['[', ']']).split('/').collect();
                let inner = split_uops(&inner)?;
                if times == 0 || times * inner.len() + out.len() > MAX_UOPS {
                    return Err(format!("'x {times}' makes none or more than {MAX_UOPS} micro-operations"));
                }
                for copy in 0..times {
                    for uop in &inner {
                        // `[1/2] (…) x 2`: the copies name the same micro-operation from different places.
                        let bracket = match (prefix.is_empty(), distances.get(copy)) {
                            (false, Some(d)) => format!("[{d}]"),
                            _ => String::new(),
                        };
                        out.push(format!("{bracket}{uop}"));
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Takes `PREFIX ( INNER ) x N` apart.
fn repetition(text: &str) -> Option<(String, String, usize)> {
    let (body, times) = text.rsplit_once(" x ")?;
    let times: u16 = times.trim().parse().ok()?;
    let body = body.trim();
    let open = body.find('(')?;
    let (prefix, group) = body.split_at(open);
    let inner = group.strip_prefix('(')?.strip_suffix(')')?;
    Some((prefix.trim().to_string(), inner.trim().to_string(), times.into()))
}

/// Splits at separators outside parentheses and brackets; trims.
fn split<'a>(text: &'a str, separators: &[char]) -> Vec<&'a str> {
    let mut out = Vec::new();
    let mut depth = 0i32;
    let mut begin = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 && separators.contains(&c) {
            out.push(text[begin..i].trim());
            begin = i + c.len_utf8();
        }
    }
    out.push(text[begin..].trim());
    out
}

/// What stands between the flows of a micro-operation.
const SEQUENCE: [char; 3] = ['+', ';', ','];

/// One flow of the pipes cell, or the bypass between two.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Flow { pipes: Pipes, all: bool, repeat: u32, independent: bool },
    Bypass,
}

fn read_uop(pipes: &str, latency: &str, blocking: Blocking) -> Result<Uop, String> {
    let stages = read_stages(pipes)?;
    let (named, latencies) = read_latencies(latency)?;
    let missing = stages.len().saturating_sub(latencies.len());
    if latencies.len() > stages.len() && !stages.is_empty() {
        return Err(format!("more latencies ({latency}) than flows ({pipes})"));
    }
    // A short latency list leaves out the single-cycle step before repeated flows, or flows without result.
    let ends_repeated = matches!(stages.last(), Some(Stage::Flow { repeat: 2.., .. }));
    let latency_of = |i: usize| match ends_repeated {
        true => i.checked_sub(missing).map_or(Latency::fixed(1), |j| latencies[j]),
        false => latencies.get(i).copied().unwrap_or(Latency::fixed(0)),
    };
    let mut flows = Vec::new();
    let mut depends = Vec::new();
    let mut wait = 0;
    for (i, stage) in stages.iter().enumerate() {
        let cell = if ends_repeated { i.checked_sub(missing) } else { Some(i) };
        let here = named.iter().filter(|&&(at, _)| Some(at) == cell);
        depends.extend(here.map(|&(_, places)| Dependence { places, flow: flows.len() as u32 }));
        match *stage {
            Stage::Bypass => wait += latency_of(i).low,
            Stage::Flow { pipes, all, repeat, independent } => {
                let Latency { low, high, load } = latency_of(i);
                let (latency, latency_max) = (low, high);
                flows.push(Flow { pipes, all_pipes: all, latency, latency_max, load, repeat, wait, independent });
                wait = 0;
            }
        }
    }
    // A micro-operation that blocks its pipe is one long occupation of it, of any number of flows.
    if flows.len() > MAX_FLOWS && blocking != Blocking::Pipe {
        return Err(format!("'{pipes}' has more than {MAX_FLOWS} flows"));
    }
    Ok(Uop { flows, depends, blocking })
}

fn read_stages(text: &str) -> Result<Vec<Stage>, String> {
    let text = unwrap(text.trim());
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let alternatives = split(text, &['|']);
    if alternatives.len() > 1 {
        let mut all = alternatives.iter().map(|a| read_stages(a));
        let mut first = all.next().expect("split gives at least one")?;
        for other in all {
            let other = other?;
            if other.len() != first.len() {
                return Err(format!("alternatives of different length in '{text}'"));
            }
            for (a, b) in first.iter_mut().zip(other) {
                if let (Stage::Flow { pipes, .. }, Stage::Flow { pipes: more, .. }) = (a, b) {
                    *pipes = pipes.or(more);
                }
            }
        }
        return Ok(first);
    }
    let mut stages = Vec::new();
    let mut rest = text;
    let mut independent = false;
    loop {
        let end = first_separator(rest);
        let mut part = if end == rest.len() && rest == text { vec![atom(rest)?] } else { read_stages(&rest[..end])? };
        if let Some(Stage::Flow { independent: i, .. }) = part.first_mut() {
            *i = independent;
        }
        stages.append(&mut part);
        let Some(separator) = rest[end..].chars().next() else { return Ok(stages) };
        independent = separator == ',';
        rest = &rest[end + 1..];
    }
}

fn first_separator(text: &str) -> usize {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '+' | ';' | ',' if depth == 0 => return i,
            _ => {}
        }
    }
    text.len()
}

/// Removes parentheses that enclose the whole text.
fn unwrap(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut depth = 0;
    for c in inner.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return text;
        }
    }
    unwrap(inner.trim())
}

fn atom(text: &str) -> Result<Stage, String> {
    let text = text.trim();
    if text == "NULL" {
        return Ok(Stage::Bypass);
    }
    if let Some(inner) = text.strip_prefix("Pipe(").and_then(|t| t.strip_suffix(')')) {
        let (what, times) = inner.rsplit_once(',').ok_or_else(|| format!("'{text}' needs a count"))?;
        let repeat = times.trim().parse().ok().filter(|n| (1..=MAX_REPEAT).contains(n));
        let repeat = repeat.ok_or_else(|| format!("the count in '{text}' is not from 1 to {MAX_REPEAT}"))?;
        return match atom(unwrap(what.trim()))? {
            Stage::Flow { pipes, all, .. } => Ok(Stage::Flow { pipes, all, repeat, independent: false }),
            Stage::Bypass => Err(format!("'{text}' repeats a bypass")),
        };
    }
    let names: Vec<&str> = text.split('&').map(str::trim).collect();
    let mut pipes = Pipes::default();
    for name in &names {
        pipes = pipes.or(pipe(name)?);
    }
    Ok(Stage::Flow { pipes, all: names.len() > 1, repeat: 1, independent: false })
}

fn pipe(name: &str) -> Result<Pipes, String> {
    Ok(match name {
        "EXA" => Pipes::EXA,
        "EXB" => Pipes::EXB,
        "EX*" => Pipes::EXA.or(Pipes::EXB),
        "EAGA" => Pipes::EAGA,
        "EAGB" => Pipes::EAGB,
        "EAG*" => Pipes::EAGA.or(Pipes::EAGB),
        "FLA" => Pipes::FLA,
        "FLB" => Pipes::FLB,
        "FL*" => Pipes::FLA.or(Pipes::FLB),
        "PRX" => Pipes::PRX,
        "BR" => Pipes::BR,
        other => return Err(format!("unknown pipe '{other}'")),
    })
}

/// The latency of a flow as its row gives it.
#[derive(Clone, Copy)]
struct Latency {
    low: u32,
    high: u32,
    load: Option<LoadToUse>,
}

impl Latency {
    const fn fixed(cycles: u32) -> Latency {
        Latency { low: cycles, high: cycles, load: None }
    }
}

/// The micro-operations depended on, as the latency they stand at and their distance; and the latencies.
type Latencies = (Vec<(usize, u32)>, Vec<Latency>);

fn read_latencies(text: &str) -> Result<Latencies, String> {
    let mut depends = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('[') {
        plain.push_str(&rest[..open]);
        let close = rest[open..].find(']').ok_or_else(|| format!("'[' without ']' in '{text}'"))? + open;
        let at = split(&plain, &SEQUENCE).len() - 1;
        for n in rest[open + 1..close].split(',') {
            depends.push((at, n.trim().parse().map_err(|_| format!("'{n}' in '{text}' is not a distance"))?));
        }
        rest = &rest[close + 1..];
    }
    plain.push_str(rest);
    let plain = unwrap(plain.trim());
    if plain.is_empty() {
        return Ok((depends, Vec::new()));
    }
    let values = split(plain, &SEQUENCE).iter().map(|v| latency_value(unwrap(v))).collect::<Result<_, _>>()?;
    Ok((depends, values))
}

fn latency_value(text: &str) -> Result<Latency, String> {
    let cycles = |t: &str| {
        let n = t.trim().parse().ok().filter(|&n| n <= MAX_LATENCY);
        n.ok_or_else(|| {
            let loads = LoadToUse::ALL.map(LoadToUse::name).join(", ");
            format!("'{text}' is neither a latency from 0 to {MAX_LATENCY} cycles nor one of {loads}")
        })
    };
    if text == "NA" {
        return Ok(Latency::fixed(0));
    }
    if let Some(load) = LoadToUse::ALL.into_iter().find(|load| load.name() == text) {
        return Ok(Latency { load: Some(load), ..Latency::fixed(0) });
    }
    if let Some(inner) = text.strip_prefix("Pipe(").and_then(|t| t.strip_suffix(')')) {
        return latency_value(inner.split(',').next().unwrap_or("").trim());
    }
    if let Some(range) = text.strip_prefix("n (").and_then(|t| t.strip_suffix(')')) {
        let (low, high) = range.split_once('-').ok_or_else(|| format!("'{text}' is no range of latencies"))?;
        let (low, high) = (cycles(low)?, cycles(high)?);
        return if low <= high {
            Ok(Latency { low, high, load: None })
        } else {
            Err(format!("'{text}' ends before it begins"))
        };
    }
    Ok(Latency::fixed(cycles(text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pipes: &str, latency: &str, count: usize) -> Vec<Uop> {
        read_uops(pipes, latency, "", count).unwrap()
    }

    /// The distances of the micro-operations that `uop` depends on.
    fn places(uop: &Uop) -> Vec<u32> {
        uop.depends.iter().map(|d| d.places).collect()
    }

    #[test]
    fn a_plain_row_is_one_flow() {
        let u = read("FL*", "9", 1);
        assert_eq!(u[0].flows[0].pipes, Pipes::FLA.or(Pipes::FLB));
        assert_eq!((u[0].flows[0].latency, u[0].flows.len()), (9, 1));
    }

    #[test]
    fn alternatives_of_two_flows_are_merged_flow_by_flow() {
        let u = read("(EXA + EXA) | (EXB + EXB)", "2+1", 1);
        let f = &u[0].flows;
        assert_eq!(f.len(), 2);
        assert!(f.iter().all(|f| f.pipes == Pipes::EXA.or(Pipes::EXB)));
        assert_eq!((f[0].latency, f[1].latency), (2, 1));
    }

    #[test]
    fn a_gather_has_a_bypass_and_a_repeated_flow_of_both_address_pipes() {
        let u = read("EXA + NULL + FLA + Pipe((EAGA & EAGB), 2)", "1+3+4+Pipe(11, 2)", 1);
        let f = &u[0].flows;
        assert_eq!(f.len(), 3);
        assert_eq!((f[1].wait, f[1].latency), (3, 4));
        assert_eq!((f[2].all_pipes, f[2].repeat, f[2].latency), (true, 2, 11));
    }

    #[test]
    fn a_load_names_the_load_to_use_latency_that_it_has() {
        let loads = |pipes: &str, latency: &str, count| {
            let uops = read(pipes, latency, count);
            uops.iter().flat_map(|u| &u.flows).map(|f| f.load).collect::<Vec<_>>()
        };
        assert_eq!(loads("EAG* / EX*| EAG*", "load_integer / 1", 2), [Some(LoadToUse::Integer), None]);
        assert_eq!(loads("EAG* / FLA", "load_short / 6", 2), [Some(LoadToUse::Short), None]);
        assert_eq!(loads("FLA + Pipe((EAGA & EAGB), 2)", "4+Pipe(load_long, 2)", 1), [None, Some(LoadToUse::Long)]);
        let error = read_uops("EAG*", "load_quick", "", 1).unwrap_err();
        assert!(error.ends_with("nor one of load_integer, load_short, load_long"), "{error}");
    }

    #[test]
    fn repetitions_are_written_out_with_their_dependences() {
        let u = read("FL* / (FLA / FL*) x 3", "4 / ([1]6 / [1,2]9) x 3", 7);
        assert_eq!(places(&u[5]), [1]);
        assert_eq!(places(&u[6]), [1, 2]);
        assert_eq!(u[6].flows[0].latency, 9);
    }

    #[test]
    fn copies_name_the_same_micro_operation_from_different_places() {
        let u = read("EAG* / (EAG*, FLA) x 3", "1 / [1/2/3](NA,NA) x 3", 4);
        let depends: Vec<_> = u.iter().map(places).collect();
        assert_eq!(depends, [vec![], vec![1], vec![2], vec![3]]);
        assert!(u[3].flows[1].independent);
    }

    #[test]
    fn a_dependence_belongs_to_the_flow_that_it_stands_at() {
        let depends = |pipes: &str, latency: &str| read(pipes, latency, 2)[1].depends.clone();
        assert_eq!(depends("FLA / FLA + FLA", "6 / 1+[1]8"), [Dependence { places: 1, flow: 1 }]);
        assert_eq!(depends("FLA / FLA + FLA", "6 / [1]1+8"), [Dependence { places: 1, flow: 0 }]);
        // A bypass is no flow.
        assert_eq!(depends("FLA / EXA+NULL+FLA", "6 / 1+3+[1]9"), [Dependence { places: 1, flow: 1 }]);
        assert_eq!(depends("EAG* / EAGA; EXA", "1 / 5;[1]1"), [Dependence { places: 1, flow: 1 }]);
        assert_eq!(depends("EAG* / Pipe(EAGA, 4)", "1 / [1](Pipe(11, 4))"), [Dependence { places: 1, flow: 0 }]);
    }

    #[test]
    fn empty_micro_operations_take_part() {
        let u = read("/ EAGA", "NA / NA", 2);
        assert!(u[0].flows.is_empty() && u[1].flows.len() == 1);
        assert_eq!(read("", "NA", 1).len(), 1);
    }

    #[test]
    fn a_wrong_count_or_pipe_is_refused() {
        assert!(read_uops("FLA / FLA", "4", "", 2).is_err());
        assert!(read_uops("FLC", "4", "", 1).is_err());
    }
}
