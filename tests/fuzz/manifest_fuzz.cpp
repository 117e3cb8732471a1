// The log of the config sync: whatever was done to it is there when it is read again, and one that is cut off or damaged is read as far as
// it goes.
#include "runner/as_agent/writer.hpp"
#include "support/property.hpp"

#include <fuzzer/FuzzedDataProvider.h>
#include <map>
#include <memory>
#include <sys/mman.h>
#include <sys/stat.h>

using namespace pi_agent;
using namespace pi_agent::fuzz;

namespace {

UniqueFd new_file()
{
    return UniqueFd::adopt(::memfd_create("manifest", MFD_CLOEXEC));
}

off_t size_of(FdRef file)
{
    struct stat facts {};
    require(::fstat(file.get(), &facts) == 0, "the log cannot be examined");
    return facts.st_size;
}

// From its beginning, as the next sync does.
std::unique_ptr<Manifest> load(FdRef log, FdRef spare)
{
    require(::lseek(log.get(), 0, SEEK_SET) == 0, "the log cannot be rewound");
    return std::make_unique<Manifest>(log, spare);
}

struct Content {
    std::map<std::string, ManifestEntry> entries;
    std::map<std::string, DocumentBase> documents;
};

bool is_same(const ManifestEntry &one, const ManifestEntry &other)
{
    return one.is_directory == other.is_directory && one.is_link == other.is_link && one.host == other.host && one.inside == other.inside &&
           one.recorded == other.recorded;
}

void require_same(Manifest &manifest, const Content &content)
{
    require(manifest.entries().size() == content.entries.size(), "the log has more or fewer entries than were recorded");
    for (const auto &[path, entry] : content.entries) {
        const ManifestEntry *found = manifest.find(path);
        require(found != nullptr && is_same(*found, entry), "an entry is not as it was recorded");
    }
    for (const auto &[name, base] : content.documents) {
        const DocumentBase *found = manifest.document(name);
        require(found != nullptr && found->host == base.host && found->chosen == base.chosen && found->written == base.written,
                "a document is not as it was recorded");
    }
}

Content content_of(Manifest &manifest)
{
    Content content;
    content.entries.insert(manifest.entries().begin(), manifest.entries().end());
    return content;
}

ManifestEntry make_entry(FuzzedDataProvider &choices)
{
    ManifestEntry entry;
    entry.is_directory = choices.ConsumeBool();
    entry.is_link = !entry.is_directory && choices.ConsumeBool();
    entry.host = {choices.ConsumeIntegral<std::uint64_t>(), 2, choices.ConsumeIntegral<std::int64_t>(), 4, 0644};
    entry.inside = {choices.ConsumeIntegral<std::uint64_t>(), 6, choices.ConsumeIntegral<std::int64_t>()};
    entry.recorded = choices.ConsumeIntegral<std::int64_t>();
    return entry;
}

void change(Manifest &manifest, Content &content, FuzzedDataProvider &choices)
{
    const std::string name = choices.ConsumeRandomLengthString(8);
    switch (choices.ConsumeIntegralInRange(0, 4)) {
    case 0: {
        const ManifestEntry entry = make_entry(choices);
        manifest.set(name, entry);
        content.entries[name] = entry;
        break;
    }
    case 1:
        manifest.intend(name, choices.ConsumeBool());
        content.entries[name] = {};
        content.entries[name].is_directory = manifest.find(name)->is_directory;
        break;
    case 2:
        manifest.forget(name);
        content.entries.erase(name);
        break;
    case 3: { // a few long ones fill the log, so that it is rewritten
        const std::size_t length = choices.ConsumeIntegral<std::uint8_t>();
        const std::string text(length > 250 ? 400UL * 1024 : length, 'x');
        const DocumentBase base{text, choices.ConsumeRandomLengthString(8), "{}"};
        manifest.set_document(name, base);
        content.documents[name] = base;
        break;
    }
    default:
        manifest.flush();
    }
}

void try_changes(FuzzedDataProvider &choices)
{
    UniqueFd log = new_file();
    UniqueFd spare = new_file();
    Content content;
    for (auto starts = choices.ConsumeIntegralInRange(1, 3); starts > 0; --starts) {
        const auto manifest = load(log, spare);
        require_same(*manifest, content);
        for (auto changes = choices.ConsumeIntegralInRange(0, 12); changes > 0; --changes)
            change(*manifest, content, choices);
        require_same(*manifest, content);
        if (manifest->rewrite_if_long()) std::swap(log, spare); // as root does
    }
    require_same(*load(log, spare), content);
}

// A log of ours, cut off somewhere, with any bytes behind it: what is read of it is read again the same, and can be added to.
void try_damaged(FuzzedDataProvider &choices)
{
    const UniqueFd log = new_file();
    const UniqueFd spare = new_file();
    Content written;
    {
        const auto manifest = load(log, spare);
        for (auto changes = choices.ConsumeIntegralInRange(0, 4); changes > 0; --changes)
            change(*manifest, written, choices);
        manifest->flush();
    }
    const off_t kept = choices.ConsumeIntegralInRange<off_t>(0, size_of(log));
    require(::ftruncate(log.get(), kept) == 0, "the log cannot be cut");
    const std::string rest = choices.ConsumeRemainingBytesAsString();
    require(::pwrite(log.get(), rest.data(), rest.size(), kept) == static_cast<ssize_t>(rest.size()), "the log cannot be written");
    const off_t damaged = size_of(log);
    Content content;
    {
        const auto manifest = load(log, spare);
        require(size_of(log) <= damaged, "reading a log made it longer");
        content = content_of(*manifest);
        manifest->intend("new", true);
        manifest->flush();
    }
    content.entries["new"] = {};
    content.entries["new"].is_directory = true;
    require_same(*load(log, spare), content);
}

} // namespace

void pi_agent::fuzz::try_input(std::string_view input)
{
    FuzzedDataProvider choices(reinterpret_cast<const std::uint8_t *>(input.data()), input.size());
    if (choices.ConsumeBool())
        try_changes(choices);
    else
        try_damaged(choices);
}
