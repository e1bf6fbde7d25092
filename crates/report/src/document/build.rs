//! Constructors of sections and values.

use super::{Body, Document, Row, Section, Value};

impl Value {
    /// Returns a cell with a word or any text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }
}

impl Row {
    /// Returns a row of text cells.
    #[must_use]
    pub fn of_texts(label: impl Into<String>, texts: impl IntoIterator<Item = impl Into<String>>) -> Row {
        Row { label: label.into(), values: texts.into_iter().map(|text| Some(Value::text(text))).collect() }
    }
}

impl Section {
    /// Sentences under a title.
    #[must_use]
    pub fn notes(title: impl Into<String>, sentences: Vec<String>) -> Section {
        Section { title: title.into(), body: Body::Notes(sentences) }
    }

    /// Returns independent values, each with a label and text.
    #[must_use]
    pub fn facts(title: impl Into<String>, facts: impl IntoIterator<Item = (impl Into<String>, String)>) -> Section {
        let rows = facts.into_iter().map(|(label, value)| Row::of_texts(label, [value])).collect();
        Section { title: title.into(), body: Body::Facts(rows) }
    }

    /// Rows under headings; the first heading is that of the labels.
    #[must_use]
    pub fn table(
        title: impl Into<String>,
        headings: impl IntoIterator<Item = impl Into<String>>,
        rows: Vec<Row>,
    ) -> Section {
        let headings = headings.into_iter().map(Into::into).collect();
        Section { title: title.into(), body: Body::Table { headings, rows } }
    }
}

impl Document {
    /// Returns a document about a single subject.
    #[must_use]
    pub fn of(title: impl Into<String>, sections: Vec<Section>) -> Document {
        Document { title: title.into(), columns: vec![String::new()], sections }
    }
}
