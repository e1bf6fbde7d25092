//! Performance of LINPACK (HPL) by problem size: DGEMM, panels, communication and noise.
//!
//! N follows from memory; the work is 2/3 N³. DGEMM takes most of it at its own rate. Three costs that computation does
//! not hide are added: panels, N² · block / 2 operations on the nodes of a column; their broadcast, N²/2 words by the
//! nodes of a row; and row swaps with their broadcast, twice as much by the nodes of a column. All three shrink
//! relative to the work as N grows, so efficiency depends on the memory per node and little on the number of nodes.
//! Where efficiency is known and N is not, N follows from it. The share of noise is simulated: at each panel, nodes
//! wait for one column ([`crate::scale::PhaseEnd::Panel`]). The threads of a node wait for each other all the time, so a
//! node counts as one core.

use std::path::Path;

use serde::Deserialize;

use crate::model::{self, Evidence, Model, read};
use crate::network::square;
use crate::scale::{PhaseEnd, Setup, simulate};

const BUILT_IN: &[(&str, &str)] = &[("fx1", include_str!("../../../data/linpack/fx1.toml"))];

/// Version of the format.
pub const VERSION: u32 = 1;
/// Number of panels simulated for the share of noise.
const PANELS: u64 = 200;
/// Maximum number of iterations to find N from an efficiency; each uses the noise at the previous N.
const STEPS: u32 = 50;

/// A machine as LINPACK sees it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    version: u32,
    /// Description.
    pub title: String,
    /// Peak of a node, operations per second.
    pub node_flops: f64,
    /// Share of the peak that DGEMM reaches without noise.
    pub dgemm: f64,
    /// Columns of a panel.
    pub block: u32,
    /// Rate of a node in panels, operations per second.
    pub panel_flops: f64,
    /// Bandwidth per node for communication that computation does not hide, bytes per second.
    pub bandwidth: f64,
    /// Share of memory that the largest problem fills.
    pub full_memory: f64,
    /// Noise: a profile or a file.
    pub noise: String,
    /// Source of the numbers.
    pub source: String,
    /// Evidence for them.
    pub evidence: Evidence,
    /// Runs to show.
    #[serde(default, rename = "run")]
    pub runs: Vec<Run>,
}

/// A run to show, and what is published about it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Nodes.
    pub nodes: u32,
    /// Memory of each node, such as 32GiB; filled unless `n` is given.
    pub memory: Option<String>,
    /// Share of memory filled; by default that of the largest problem.
    pub fill: Option<f64>,
    /// Rows of the matrix.
    pub n: Option<f64>,
    /// Whether N is unknown and follows from the published efficiency.
    #[serde(default)]
    pub solve: bool,
    /// Whether a number of the machine is fitted to the published efficiency.
    #[serde(default)]
    pub fit: bool,
    /// Published efficiency, %.
    pub published: Option<f64>,
    /// Where it is published.
    #[serde(default)]
    pub row: String,
}

/// Parses an amount of memory such as 32GiB or 512MiB; returns bytes.
///
/// # Errors
/// If it is malformed.
pub fn memory(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];
    let read =
        UNITS.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?.trim().parse::<u32>().ok()?, shift)));
    let bytes = read.map(|(number, shift)| u64::from(number) << shift).filter(|&bytes| bytes > 0 && bytes <= 1 << 50);
    bytes.ok_or_else(|| {
        format!("'{text}' is not an amount of memory; write a number and KiB, MiB, GiB or TiB, such as 32GiB")
    })
}

/// A problem on a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Nodes.
    pub nodes: u32,
    /// Rows of the matrix.
    pub n: f64,
}

impl Problem {
    /// Returns the share of memory that it fills, with `bytes` per node.
    #[must_use]
    pub fn fill(&self, bytes: u64) -> f64 {
        8.0 * self.n * self.n / (f64::from(self.nodes) * bytes as f64)
    }
}

/// How the problem size of a run is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// N is published with the efficiency.
    Published,
    /// N is solved from the published efficiency.
    Solved,
    /// N or the share of memory is given; no efficiency is published.
    Given,
}

impl Size {
    /// Returns a word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Size::Published => "published",
            Size::Solved => "solved for",
            Size::Given => "given",
        }
    }
}

/// What an estimated efficiency says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// A number of the machine is fitted to the published efficiency of this run.
    Fitted,
    /// N is chosen so that the efficiency is the published one.
    Chosen,
    /// Nothing was adjusted to an efficiency of this run.
    Predicted,
}

impl Basis {
    /// Returns a word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Chosen => "chosen",
            Basis::Predicted => "predicted",
        }
    }
}

impl Run {
    /// Returns what the estimated efficiency says; `own_noise`: under the noise of the machine's file, for which its
    /// numbers were fitted and N is chosen.
    #[must_use]
    pub fn basis(&self, own_noise: bool) -> Basis {
        match (own_noise, self.solve, self.fit) {
            (true, true, _) => Basis::Chosen,
            (true, false, true) => Basis::Fitted,
            _ => Basis::Predicted,
        }
    }
}

/// Times of a run without noise, seconds.
#[derive(Clone, Copy, Debug)]
struct Quiet {
    /// All operations at peak rate.
    peak: f64,
    /// All operations at DGEMM's rate.
    dgemm: f64,
    panel: f64,
    communication: f64,
}

impl Quiet {
    fn seconds(self) -> f64 {
        self.dgemm + self.panel + self.communication
    }
}

/// Components of a run, as shares of its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The problem.
    pub problem: Problem,
    /// Run time, seconds.
    pub seconds: f64,
    /// Share of peak reached.
    pub efficiency: f64,
    /// Share of the time lost by DGEMM relative to peak.
    pub dgemm: f64,
    /// Share of the time in panels.
    pub panel: f64,
    /// Share of the time in communication.
    pub communication: f64,
    /// Share of the time lost to noise.
    pub noise: f64,
}

impl Machine {
    /// Loads a machine: a built-in one by name, or a file by path.
    ///
    /// # Errors
    /// The error, its location, and how to fix it.
    pub fn load(name_or_path: &str) -> Result<Machine, String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Machine::parse(text, name_or_path);
        }
        if !name_or_path.ends_with(".toml") && !Path::new(name_or_path).exists() {
            return Err(format!(
                "there is no machine '{name_or_path}' for LINPACK; fx1 is built in, for others give the path of a .toml file"
            ));
        }
        Machine::parse(&read(Path::new(name_or_path))?, name_or_path)
    }

    /// Parses a machine; `name` is used in messages.
    ///
    /// # Errors
    /// The error, its location, and how to fix it.
    pub fn parse(text: &str, name: &str) -> Result<Machine, String> {
        let machine: Machine = toml::from_str(text).map_err(|e| format!("{name}: {}", e.to_string().trim_end()))?;
        if machine.version != VERSION {
            return Err(format!("{name}: version = {}; this program reads version {VERSION}", machine.version));
        }
        let rates = [
            ("node_flops", machine.node_flops),
            ("panel_flops", machine.panel_flops),
            ("bandwidth", machine.bandwidth),
        ];
        if let Some((key, value)) = rates.into_iter().find(|(_, v)| !(v.is_finite() && *v > 0.0)) {
            return Err(format!("{name}: {key} = {value} must be above 0"));
        }
        let shares = [("dgemm", machine.dgemm), ("full_memory", machine.full_memory)];
        if let Some((key, value)) = shares.into_iter().find(|(_, v)| !(*v > 0.0 && *v <= 1.0)) {
            return Err(format!("{name}: {key} = {value} must be above 0 and at most 1"));
        }
        if machine.block == 0 {
            return Err(format!("{name}: block = 0; a panel has columns"));
        }
        if let Some(run) = machine.runs.iter().find(|run| run.fit && (run.published.is_none() || run.solve)) {
            return Err(format!(
                "{name}: fit = true for the run on {} nodes: a fit needs a published efficiency and an N that is not solved \
                 for",
                run.nodes
            ));
        }
        Ok(machine)
    }

    /// Returns the problem that fills a share `fill` of the memory of `nodes` nodes with `bytes` each.
    ///
    /// # Errors
    /// If nothing can be filled.
    pub fn filling(&self, nodes: u32, bytes: u64, fill: f64) -> Result<Problem, String> {
        if !(fill > 0.0 && fill <= 1.0) {
            return Err(format!("a share {fill} of the memory; it must be above 0 and at most 1"));
        }
        let n = (bytes as f64 * fill * f64::from(nodes) / 8.0).sqrt().floor();
        self.check(Problem { nodes, n })
    }

    /// Returns the problem of a run, and how its size is known. Solving uses the machine's own noise.
    ///
    /// # Errors
    /// If neither N nor memory is given, or N cannot be determined.
    pub fn problem(&self, run: &Run, seed: u64) -> Result<(Problem, Size), String> {
        let bytes = run.memory.as_deref().map(memory).transpose()?;
        let size = if run.published.is_some() { Size::Published } else { Size::Given };
        match (run.n, bytes, run.published) {
            (None, Some(bytes), Some(published)) if run.solve => {
                let problem = self.reaching(run.nodes, published / 100.0, seed)?;
                let fill = problem.fill(bytes);
                if fill > 1.0 {
                    return Err(format!(
                        "{published} % on {} nodes needs N = {:.0}, {:.0} % of their memory",
                        run.nodes,
                        problem.n,
                        fill * 100.0
                    ));
                }
                Ok((problem, Size::Solved))
            }
            (n, ..) if run.solve => Err(format!(
                "a run on {} nodes to solve for has {}",
                run.nodes,
                if n.is_some() { "an N" } else { "no memory or no published efficiency" }
            )),
            (Some(n), ..) => Ok((self.check(Problem { nodes: run.nodes, n })?, size)),
            (None, Some(bytes), _) => {
                Ok((self.filling(run.nodes, bytes, run.fill.unwrap_or(self.full_memory))?, Size::Given))
            }
            (None, None, _) => Err(format!("a run on {} nodes needs N or the memory of a node", run.nodes)),
        }
    }

    /// Returns the problem that reaches an efficiency on a number of nodes.
    ///
    /// # Errors
    /// If there is none.
    pub fn reaching(&self, nodes: u32, efficiency: f64, seed: u64) -> Result<Problem, String> {
        let model = self.noise_model()?;
        // Panels and communication relative to the work fall as 1 / N, so one N determines all others.
        let any = self.filling(nodes, 1 << 36, 1.0)?;
        let quiet = self.quiet(any);
        let falling = (quiet.panel + quiet.communication) / quiet.peak * any.n;
        let mut problem = any;
        for _ in 0..STEPS {
            let noise = self.noise(problem, &model, self.quiet(problem).seconds(), seed)?;
            let left = (1.0 - noise) / efficiency - 1.0 / self.dgemm;
            let next = self.check(Problem { nodes, n: (falling / left).round() });
            let next = next.map_err(|_| {
                format!("no N gives {:.2} % on {nodes} nodes: DGEMM and noise leave {left:.4}", efficiency * 100.0)
            })?;
            if next == problem {
                break;
            }
            problem = next;
        }
        Ok(problem)
    }

    /// Checks that a problem can be evaluated.
    ///
    /// # Errors
    /// If there are no nodes, or N has fewer panels than the nodes have columns.
    pub fn check(&self, problem: Problem) -> Result<Problem, String> {
        let [_, columns] = square(problem.nodes.max(1));
        let least = f64::from(self.block) * f64::from(columns);
        if problem.nodes == 0 {
            return Err("0 nodes; there must be 1 or more".to_owned());
        }
        if problem.n.is_nan() || problem.n < least || problem.n > 1e9 {
            return Err(format!(
                "N = {} is not possible on {} nodes: with blocks of {} columns, the minimum is {least} and the maximum 1e9",
                problem.n, problem.nodes, self.block
            ));
        }
        Ok(problem)
    }

    /// Estimates a run under the noise of `model`.
    ///
    /// # Errors
    /// If the noise leaves a core no time.
    pub fn estimate(&self, problem: Problem, model: &Model, seed: u64) -> Result<Estimate, String> {
        let problem = self.check(problem)?;
        let quiet = self.quiet(problem);
        let noise = self.noise(problem, model, quiet.seconds(), seed)?;
        let seconds = quiet.seconds() / (1.0 - noise);
        Ok(Estimate {
            problem,
            seconds,
            efficiency: quiet.peak / seconds,
            dgemm: (quiet.dgemm - quiet.peak) / seconds,
            panel: quiet.panel / seconds,
            communication: quiet.communication / seconds,
            noise,
        })
    }

    /// Times of a run without noise.
    fn quiet(&self, Problem { nodes, n }: Problem) -> Quiet {
        let [rows, columns] = square(nodes).map(f64::from);
        let peak = 2.0 / 3.0 * n.powi(3) / (f64::from(nodes) * self.node_flops);
        let communication = match nodes {
            1 => 0.0,
            _ => 8.0 * (n * n / 2.0 / rows + n * n / columns) / self.bandwidth,
        };
        let panel = n * n * f64::from(self.block) / 2.0 / rows / self.panel_flops;
        Quiet { peak, dgemm: peak / self.dgemm, panel, communication }
    }

    /// Share of the time lost to noise, from enough phases.
    fn noise(&self, problem: Problem, model: &Model, seconds: f64, seed: u64) -> Result<f64, String> {
        let panels = (problem.n / f64::from(self.block)).ceil().max(1.0);
        let grain = ((seconds / panels * 1e9).round() as u64).max(1);
        let phases = (panels as u64).min(PANELS);
        let phase_end = PhaseEnd::Panel { cost: 0, grid: square(problem.nodes) };
        let setup = Setup { nodes: problem.nodes, cores: 1, grain, imbalance: 0.0, phases, end: phase_end, seed };
        Ok(simulate(model, &setup)?.noise())
    }

    /// Returns the machine's noise model.
    ///
    /// # Errors
    /// If it cannot be loaded.
    pub fn noise_model(&self) -> Result<Model, String> {
        model::load(&self.noise)
    }
}
