// Looks a policy's image up in the lists that root's podman keeps of images and their layers, without running podman.
#include "runner/root/method/method_program.hpp"

#include "common/base/files.hpp"
#include "common/host/beneath.hpp"
#include "common/host/trusted_file.hpp"

namespace pi_agent {

namespace {

constexpr std::size_t list_size_limit = std::size_t{16} << 20U; // bytes
constexpr std::size_t digits_of_id = 64;
constexpr std::string_view digest_prefix = "sha256:";

bool is_id(std::string_view text)
{
    return text.size() == digits_of_id && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "host:5000/a/b", ":12" and "@sha256:…": the second begins after the last slash.
struct ImageName {
    std::string repository;
    std::string tag;
    std::string digest;
};

ImageName parse_image_name(const std::string &text)
{
    ImageName name;
    const std::size_t at = text.find('@');
    if (at != std::string::npos) name.digest = text.substr(at + 1);
    const std::string rest = text.substr(0, at);
    const std::size_t slash = rest.rfind('/');
    const std::size_t colon = rest.find(':', slash == std::string::npos ? 0 : slash);
    name.repository = rest.substr(0, colon);
    if (colon != std::string::npos) name.tag = rest.substr(colon + 1);
    return name;
}

// The repositories that it can mean, with their registry.
std::vector<std::string> repositories_of(const std::string &repository)
{
    const std::size_t slash = repository.find('/');
    const std::string first = repository.substr(0, slash);
    if (slash != std::string::npos && (first == "localhost" || first.find_first_of(".:") != std::string::npos)) return {repository};
    return {"localhost/" + repository, std::string("docker.io/") + (slash == std::string::npos ? "library/" : "") + repository};
}

std::vector<std::string> names_in_list(const nlohmann::json &image)
{
    std::vector<std::string> names;
    const auto found = image.find("names");
    if (found == image.end() || !found->is_array()) return names;
    for (const auto &name : *found)
        if (name.is_string()) names.push_back(name.get<std::string>());
    return names;
}

// The list has an image's digest beside its names; a name has it too where the image was pulled by it.
bool is_called(const nlohmann::json &image, const std::string &repository, const ImageName &wanted)
{
    const std::vector<std::string> names = names_in_list(image);
    return std::any_of(names.begin(), names.end(), [&](const std::string &text) {
        const ImageName name = parse_image_name(text);
        if (name.repository != repository) return false;
        if (!wanted.digest.empty()) return name.digest == wanted.digest || text_of(image, "digest") == wanted.digest;
        return name.tag == (wanted.tag.empty() ? "latest" : wanted.tag);
    });
}

// Nobody but root can change the list, and what is above it. Null where podman has no such list.
nlohmann::json read_list(const std::string &name, const SandboxPolicy &policy)
{
    const std::string path = std::string(podman_images) + "/" + name;
    const auto text =
        if_there([&] { return std::optional(read_trusted_file(path, list_size_limit, "podman's list of images or layers")); });
    if (!text) return nullptr;
    nlohmann::json list = nlohmann::json::parse(*text, nullptr, false);
    if (!list.is_array()) refuse_image(policy, "cannot be looked up: " + path + " is not a list of podman's");
    return list;
}

const nlohmann::json *find_by_id(const nlohmann::json &list, const std::string &id)
{
    const auto found = std::find_if(list.begin(), list.end(), [&](const auto &one) { return one.is_object() && text_of(one, "id") == id; });
    return found == list.end() ? nullptr : &*found;
}

// Its files. With vfs, each layer has those of all below it, too.
UniqueFd open_layer(const std::string &driver, const std::string &id)
{
    const bool has_differences = driver == "overlay";
    const std::string place = std::string(podman_images) + (has_differences ? "/overlay/" + id : "/vfs/dir");
    const UniqueFd kept = open_trusted(place, O_PATH | O_DIRECTORY, "podman's layers of images");
    return open_beneath(kept, has_differences ? "diff" : id, O_RDONLY | O_DIRECTORY);
}

// Of each name, the topmost layer that has it decides.
std::map<std::string, std::string> links_at_top(const std::string &driver, const std::vector<std::string> &layers)
{
    std::map<std::string, std::string> links;
    std::set<std::string> seen;
    for (const std::string &id : layers) {
        const UniqueFd layer = open_layer(driver, id);
        for (const std::string &name : names_in(layer)) {
            const std::string target = seen.insert(name).second ? read_link(layer, name) : "";
            if (!target.empty()) links.emplace(name, target);
        }
        if (driver != "overlay") break;
    }
    return links;
}

} // namespace

std::string find_podman_image(const nlohmann::json &list, const std::string &name)
{
    std::string_view digits = name;
    if (digits.starts_with(digest_prefix)) digits.remove_prefix(digest_prefix.size());
    const ImageName wanted = parse_image_name(name);
    const std::vector<std::string> repositories = is_id(digits) ? std::vector<std::string>{""} : repositories_of(wanted.repository);
    for (const std::string &repository : repositories)
        for (const auto &image : list) {
            std::string id = image.is_object() ? text_of(image, "id") : "";
            if (is_id(id) && (repository.empty() ? id == digits : is_called(image, repository, wanted))) return id;
        }
    return "";
}

std::vector<std::string> layers_of_image(const nlohmann::json &images, const nlohmann::json &layers, const std::string &id)
{
    std::vector<std::string> chain;
    const nlohmann::json *entry = find_by_id(images, id);
    std::string next = entry == nullptr ? "" : text_of(*entry, "layer");
    while (is_id(next) && (entry = find_by_id(layers, next)) != nullptr && chain.size() < layers.size()) {
        chain.push_back(next);
        next = text_of(*entry, "parent");
    }
    if (!next.empty()) chain.clear(); // one is missing
    return chain;
}

std::vector<Bind> lay_over_links(std::vector<Bind> tree, const std::string &top, const PodmanImage &image, const SandboxPolicy &policy)
{
    constexpr std::string_view filled[] = {"proc", "sys", "dev", "run", "tmp", "home", "root"}; // with mounts of their own
    for (const auto &[name, target] : image.links) {
        const auto place = std::find_if(tree.begin(), tree.end(), [&, &link = name](const Bind &one) { return one.target == "/" + link; });
        if (place == tree.end() && std::find(std::begin(filled), std::end(filled), name) == std::end(filled)) continue;
        if (place != tree.end() && place->source == top + "/" + target.substr(target.front() == '/' ? 1 : 0))
            tree.erase(place); // it leads into another part of the tree, as the host's own does
        else
            refuse_image(policy, "has a link at /" + name + ", to " + escape_for_display(target) +
                                     ", and a session needs a directory there, or the link that this host has; use an image of this host's "
                                     "release, or one without that link");
    }
    return tree;
}

std::optional<PodmanImage> require_podman(const AsRoot & /*root*/, const SandboxPolicy &policy)
{
    require_method_programs(SandboxMethod::podman);
    if (policy.image.empty()) return std::nullopt;
    for (const std::string driver : {"overlay", "vfs"}) {
        const nlohmann::json images = read_list(driver + "-images/images.json", policy);
        const std::string id = find_podman_image(images, policy.image);
        if (id.empty()) continue;
        const auto layers = layers_of_image(images, read_list(driver + "-layers/layers.json", policy), id);
        if (layers.empty())
            refuse_image(policy, "has no layers that podman's list of layers knows; the administrator pulls or makes it again");
        return PodmanImage{id, driver, links_at_top(driver, layers)};
    }
    refuse_image(policy, std::string("is not among root's images in ") + podman_images +
                             ", and a start pulls no image; the administrator runs as root: podman pull " + policy.image +
                             " (or makes it: podman import)");
}

} // namespace pi_agent
