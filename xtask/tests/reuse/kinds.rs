//! Kinds of change, and how each changes a world by chance.

#[path = "kinds/command.rs"]
mod command;
#[path = "kinds/files.rs"]
mod files;
#[path = "kinds/machine.rs"]
mod machine;

use crate::chance::Chance;
use crate::world::World;

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    HeaderByte,
    Comment,
    Whitespace,
    Flag,
    FlagOrder,
    Define,
    NameDefine,
    PastedName,
    AliasedName,
    Environment,
    ShadowingHeader,
    LateHeader,
    HasInclude,
    IncbinTable,
    Timestamp,
    LinkRetarget,
    LinkInstead,
    SwappedTool,
    ToolkitFile,
    Mtime,
    MtimeWithLineInfo,
    Twins,
    HostOnlyCode,
    SourceLocation,
    UnrelatedFile,
    EqualCopy,
    FolderRemoved,
    ResponseFile,
}

impl Kind {
    /// All kinds.
    pub(crate) const ALL: [Self; 28] = [
        Self::HeaderByte,
        Self::Comment,
        Self::Whitespace,
        Self::Flag,
        Self::FlagOrder,
        Self::Define,
        Self::NameDefine,
        Self::PastedName,
        Self::AliasedName,
        Self::Environment,
        Self::ShadowingHeader,
        Self::LateHeader,
        Self::HasInclude,
        Self::IncbinTable,
        Self::Timestamp,
        Self::LinkRetarget,
        Self::LinkInstead,
        Self::SwappedTool,
        Self::ToolkitFile,
        Self::Mtime,
        Self::MtimeWithLineInfo,
        Self::Twins,
        Self::HostOnlyCode,
        Self::SourceLocation,
        Self::UnrelatedFile,
        Self::EqualCopy,
        Self::FolderRemoved,
        Self::ResponseFile,
    ];
}

/// A world, the same after a change, and the change in words.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) before: World,
    pub(crate) after: World,
    pub(crate) what: String,
}

impl Change {
    /// A change of `kind` in one of the trees of `base`, which gives the world of a unit.
    pub(crate) fn draw(kind: Kind, chance: &mut Chance, base: &dyn Fn(&str) -> World) -> Self {
        let before = base(kind.unit(chance));
        let after = before.clone();
        let mut change = Self { kind, before, after, what: String::new() };
        change.what = change.make(chance);
        change
    }

    fn make(&mut self, chance: &mut Chance) -> String {
        match self.kind {
            Kind::HeaderByte => self.header_byte(chance),
            Kind::Comment => self.comment(chance),
            Kind::Whitespace => self.whitespace(chance),
            Kind::Flag => self.flag(chance),
            Kind::FlagOrder => self.flag_order(chance),
            Kind::Define => self.define(chance),
            Kind::NameDefine => self.name_define(chance),
            Kind::PastedName => self.pasted_name(chance),
            Kind::AliasedName => self.aliased_name(chance),
            Kind::Environment => self.environment(chance),
            Kind::ShadowingHeader => self.shadowing_header(chance),
            Kind::LateHeader => self.late_header(chance),
            Kind::HasInclude => self.has_include(chance),
            Kind::IncbinTable => self.incbin_table(chance),
            Kind::Timestamp => self.timestamp(chance),
            Kind::LinkRetarget => self.link_retarget(chance),
            Kind::LinkInstead => self.link_instead(chance),
            Kind::SwappedTool => self.swapped_tool(chance),
            Kind::ToolkitFile => self.toolkit_file(chance),
            Kind::Mtime => self.mtime(chance, false),
            Kind::MtimeWithLineInfo => self.mtime(chance, true),
            Kind::Twins => self.twins(chance),
            Kind::HostOnlyCode => self.host_only_code(chance),
            Kind::SourceLocation => self.source_location(chance),
            Kind::UnrelatedFile => self.unrelated_file(chance),
            Kind::EqualCopy => self.equal_copy(chance),
            Kind::FolderRemoved => self.folder_removed(chance),
            Kind::ResponseFile => self.response_file(chance),
        }
    }

    /// Does the same to both worlds.
    fn both(&mut self, change: impl Fn(&mut World)) {
        change(&mut self.before);
        change(&mut self.after);
    }
}

impl Kind {
    /// A unit that a change of this kind says something about.
    fn unit(self, chance: &mut Chance) -> &'static str {
        use crate::bases::{ALL, CHAIN, HOST, LINKED, NAMED, PTX, TABLE, TWINS};
        match self {
            Self::HasInclude => chance.one(&[CHAIN, TWINS]),
            Self::IncbinTable => TABLE,
            Self::LinkRetarget => LINKED,
            Self::Twins => TWINS,
            Self::HostOnlyCode => CHAIN,
            Self::SourceLocation => HOST,
            Self::PastedName | Self::AliasedName => chance.one(&[NAMED, HOST, TWINS]),
            Self::ShadowingHeader => chance.one(&[CHAIN, NAMED, HOST, TABLE, TWINS]),
            Self::LateHeader => chance.one(&[PTX, CHAIN, HOST]),
            Self::MtimeWithLineInfo => chance.one(&[CHAIN, NAMED]),
            _ => chance.one(&ALL),
        }
    }
}
