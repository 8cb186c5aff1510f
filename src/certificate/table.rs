//! Making a certificate of the records of a build, and reading a unit's closure back.

use std::collections::BTreeSet;

use super::{
    BarRow, Certificate, Controls, FileRow, LinkRow, ListedRow, ObjectReuse, Pair, Place, PredicateType,
    Rows, Totals, Unit,
};
use crate::closure::{Closure, File, Found, Located};
use crate::receipt::{Decision, DigestSet, Name, RelativePath, StatementType, Subject, Token, Variable};
use crate::reuse::{self, Bar, Invocation, Recorded};
use crate::unit::UnitRecord;
use crate::{Digest, command};

/// A unit of a build.
#[derive(Clone, Copy, Debug)]
pub struct UnitParts<'a> {
    /// Name of its tree.
    pub tree: &'a str,
    /// Source path in the tree.
    pub source: &'a str,
    /// Object path.
    pub object: &'a str,
    /// Its record.
    pub record: &'a UnitRecord,
}

/// What a certificate is made of.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// The places as receipts name them.
    pub place: command::Place,
    /// The environment, naming places.
    pub environment: Vec<(String, String)>,
    /// Trees that may take another's objects.
    pub pairs: Vec<Pair>,
    /// The units, in the order of the build receipt; not empty.
    pub units: Vec<UnitParts<'a>>,
}

impl ObjectReuse {
    /// The certificate of `parts`.
    ///
    /// # Errors
    /// A sentence, if a text cannot stand in a receipt or a negative control was not refused.
    pub fn of(parts: &Parts<'_>) -> Result<Self, String> {
        let tables = Tables::of(parts.units.iter().map(|unit| &unit.record.closure));
        let place = Place {
            toolchain: Token::new(&*parts.place.toolchain)?,
            tree: Token::new(&*parts.place.tree)?,
            build: Token::new(&*parts.place.build)?,
            host: Token::new(&*parts.place.host)?,
        };
        let variable = |(name, value): &(String, String)| {
            Ok(Variable { name: Name::new(&**name)?, value: Token::new(&**value)? })
        };
        let mut certificate = Certificate {
            rule_sha256: Digest::of(reuse::RULE.as_bytes()),
            place,
            environment: parts.environment.iter().map(variable).collect::<Result<_, String>>()?,
            pairs: parts.pairs.clone(),
            totals: Totals { reused: 0, compiled: 0 },
            controls: Controls { unit: 0, tried: 0, refused: 0, rows: Vec::new() },
            units: parts.units.iter().map(|unit| tables.unit(unit)).collect::<Result<_, String>>()?,
            files: tables.files,
            absent: tables.absent,
            folders: tables.folders,
            listed: tables.listed,
            links: tables.links,
        };
        certificate.totals = certificate.counted();
        certificate.controls = certificate.tried()?;
        let names = certificate.names();
        let digests: Option<Vec<Digest>> =
            certificate.units.iter().map(|unit| certificate.closure_sha256(unit, &names)).collect();
        for (unit, digest) in certificate.units.iter_mut().zip(digests.unwrap_or_default()) {
            unit.closure_sha256 = digest;
        }
        let subject = |unit: &Unit| {
            let name = RelativePath::new(format!("{}/{}", unit.tree, unit.object))?;
            Ok(Subject { name, digest: DigestSet { sha256: unit.object_sha256 } })
        };
        Ok(Self {
            statement_type: StatementType::StatementV1,
            predicate_type: PredicateType::ObjectReuseV1,
            subject: certificate.units.iter().map(subject).collect::<Result<_, String>>()?,
            predicate: certificate,
        })
    }
}

impl Certificate {
    /// The closure of `unit`; none if a row lies beyond its table or two rows are of one place.
    #[must_use]
    pub fn closure(&self, unit: &Unit) -> Option<Closure> {
        let files = unit.files.of_table(&self.files)?;
        let file = |row: &FileRow| {
            let FileRow { at, sha256, size_bytes, mtime_s } = row.clone();
            (at, File { sha256, size_bytes, mtime_s })
        };
        let closure = Closure {
            files: files.iter().map(|row| file(row)).collect(),
            absent: unit.absent.of_table(&self.absent)?.into_iter().cloned().collect(),
            folders: unit.folders.of_table(&self.folders)?.into_iter().cloned().collect(),
            listed: unit
                .listed
                .of_table(&self.listed)?
                .iter()
                .map(|r| (r.at.clone(), r.names_sha256))
                .collect(),
            links: unit
                .links
                .of_table(&self.links)?
                .iter()
                .map(|r| (r.at.clone(), r.holds.clone()))
                .collect(),
        };
        (closure.files.len() == files.len()).then_some(closure)
    }

    /// How `unit` was called.
    #[must_use]
    pub fn invocation(&self, unit: &Unit) -> Invocation {
        let Place { toolchain, tree, build, host } = &self.place;
        let place = command::Place {
            toolchain: toolchain.to_string(),
            tree: tree.to_string(),
            build: build.to_string(),
            host: host.to_string(),
        };
        let environment = self.environment.iter().map(|v| (v.name.to_string(), v.value.to_string()));
        let argv = unit.argv.iter().map(Token::to_string).collect();
        Invocation { argv, environment: environment.collect(), place }
    }

    /// Names of all name defines.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.pairs.iter().flat_map(|pair| &pair.name_defines).map(Name::to_string).collect()
    }

    /// Digest of everything that the rule compares of `unit`.
    #[must_use]
    pub fn closure_sha256(&self, unit: &Unit, names: &BTreeSet<String>) -> Option<Digest> {
        let (invocation, closure) = (self.invocation(unit), self.closure(unit)?);
        let look = |at: &Located| closure.find(at).unwrap_or(Found::Absent);
        Some(reuse::compare(&invocation, &closure, &invocation, names, look).recorded)
    }

    /// Counts over the units.
    #[must_use]
    pub fn counted(&self) -> Totals {
        let reused = self.units.iter().filter(|unit| unit.decision == Decision::Reused).count();
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Totals { reused: number(reused), compiled: number(self.units.len() - reused) }
    }

    /// The negative controls on the first unit that nothing bars.
    ///
    /// # Errors
    /// A sentence, if there is none or a control was not refused.
    pub fn tried(&self) -> Result<Controls, String> {
        let at = self.units.iter().position(|unit| unit.bars.is_empty());
        // A build of which nothing may be certified has nothing to show.
        let Some(at) = at else {
            return Ok(Controls { unit: 0, tried: 0, refused: 0, rows: Vec::new() });
        };
        let unit = &self.units[at];
        let closure = self.closure(unit).ok_or("a row beyond its table")?;
        let recorded = Recorded { invocation: &self.invocation(unit), closure: &closure, bars: &[] };
        let rows = reuse::controls(recorded)?;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Controls { unit: number(at), tried: number(rows.len()), refused: number(rows.len()), rows })
    }

    /// Why `unit` may not be taken.
    #[must_use]
    pub fn bars(&self, unit: &Unit) -> Vec<Bar> {
        unit.bars.iter().map(|bar| Bar { reason: bar.reason, about: bar.about.to_string() }).collect()
    }
}

/// The tables that the units share.
struct Tables {
    files: Vec<FileRow>,
    absent: Vec<Located>,
    folders: Vec<Located>,
    listed: Vec<ListedRow>,
    links: Vec<LinkRow>,
}

impl Tables {
    fn of<'a>(closures: impl Iterator<Item = &'a Closure> + Clone) -> Self {
        fn table<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
            items.collect::<BTreeSet<T>>().into_iter().collect()
        }
        Self {
            files: table(closures.clone().flat_map(file_rows)),
            absent: table(closures.clone().flat_map(|closure| closure.absent.iter().cloned())),
            folders: table(closures.clone().flat_map(|closure| closure.folders.iter().cloned())),
            listed: table(closures.clone().flat_map(listed_rows)),
            links: table(closures.flat_map(link_rows)),
        }
    }

    fn unit(&self, parts: &UnitParts<'_>) -> Result<Unit, String> {
        let (record, closure) = (parts.record, &parts.record.closure);
        let decided = &record.decided;
        let token = |text: &Option<String>| text.as_deref().map(Token::new).transpose();
        let bar = |bar: &Bar| Ok(BarRow { reason: bar.reason, about: Token::new(&*bar.about)? });
        Ok(Unit {
            tree: Name::new(parts.tree)?,
            source: RelativePath::new(parts.source)?,
            object: RelativePath::new(parts.object)?,
            argv: record.invocation.argv.iter().map(|word| Token::new(&**word)).collect::<Result<_, _>>()?,
            files: rows(&self.files, file_rows(closure)),
            absent: rows(&self.absent, closure.absent.iter().cloned()),
            folders: rows(&self.folders, closure.folders.iter().cloned()),
            listed: rows(&self.listed, listed_rows(closure)),
            links: rows(&self.links, link_rows(closure)),
            bars: record.bars.iter().map(bar).collect::<Result<_, String>>()?,
            closure_sha256: Digest::of(b""),
            decision: decided.decision,
            reason: decided.reason,
            about: token(&decided.about)?,
            recorded: token(&decided.recorded)?,
            found: token(&decided.found)?,
            unused: decided.unused.iter().map(|name| Name::new(&**name)).collect::<Result<_, _>>()?,
            object_sha256: record.object_sha256,
            size_bytes: record.size_bytes,
        })
    }
}

fn file_rows(closure: &Closure) -> impl Iterator<Item = FileRow> {
    closure.files.iter().map(|(at, file)| {
        let File { sha256, size_bytes, mtime_s } = *file;
        FileRow { at: at.clone(), sha256, size_bytes, mtime_s }
    })
}

fn listed_rows(closure: &Closure) -> impl Iterator<Item = ListedRow> {
    closure.listed.iter().map(|(at, names)| ListedRow { at: at.clone(), names_sha256: *names })
}

fn link_rows(closure: &Closure) -> impl Iterator<Item = LinkRow> {
    closure.links.iter().map(|(at, holds)| LinkRow { at: at.clone(), holds: holds.clone() })
}

/// The rows of `items` in `table`, which holds them all.
fn rows<T: Ord>(table: &[T], items: impl Iterator<Item = T>) -> Rows {
    let number = |item: T| table.binary_search(&item).ok().and_then(|at| u32::try_from(at).ok());
    Rows::of(items.filter_map(number))
}
