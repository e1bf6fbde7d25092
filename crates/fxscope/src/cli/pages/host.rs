//! `fxscope pages host`: the page sizes of this host and of its processes.

use std::process::ExitCode;

use fxscope::hostinfo::memory::read;
use fxscope::lab::pages;
use fxscope::report::document::Document;
use fxscope::report::render::html;

use super::super::Outcome;
use super::super::form::{Answer, Form};

/// Show which page sizes this Linux host offers, and with --pid which ones a running process received.
///
/// Mappings of a process are visible to its owner and to root.
#[derive(clap::Args)]
pub struct Args {
    /// The process to inspect.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    #[command(flatten)]
    form: Form,
}

/// Shows the host, and the process.
pub(super) fn host(args: &Args) -> Outcome {
    let outputs = args.form.check()?;
    let host = read::host();
    let process = args.pid.map(read::process).transpose()?;
    let mut documents = vec![pages::host::about_host(&host)];
    documents.extend(process.as_ref().map(|process| pages::host::about_process(&host, process)));
    outputs.write(&Answer {
        html: &|| html::experiment(&joined(&documents), &[]),
        json: &|| pages::host::json(&host, process.as_ref()),
        text: &documents,
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the sections of all documents under the title of the first.
fn joined(documents: &[Document]) -> Document {
    let title = documents.first().map_or_else(String::new, |first| first.title.clone());
    let sections = documents.iter().flat_map(|document| document.sections.iter().cloned()).collect();
    Document { title, columns: Vec::new(), sections }
}
