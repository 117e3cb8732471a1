// The receiver's end, what ends a session that is being prepared, and the hand-over of its record.
#include "runner/root/errand/session_watch.hpp"

#include "common/seams/seams.hpp"
#include "runner/as_user/project.hpp"
#include "runner/root/errand/user_files.hpp"

#include <csignal>
#include <sys/signalfd.h>

namespace pi_agent {

namespace {

constexpr const char *ended_text = "the session was ended while it was being prepared";

constexpr int record_patience_seconds = 5;

} // namespace

UniqueFd watch_termination()
{
    sigset_t watched;
    sigemptyset(&watched);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT})
        sigaddset(&watched, number);
    if (sigprocmask(SIG_BLOCK, &watched, nullptr) != 0) throw_errno("blocking signals");
    UniqueFd fd = UniqueFd::adopt(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!fd) throw_errno("watching signals");
    return fd;
}

std::array<pollfd, 3> SessionWatch::waits() const noexcept
{
    return {pollfd{receiver.get(), POLLIN, 0}, pollfd{wrapper.get(), POLLRDHUP, 0}, pollfd{termination.get(), POLLIN, 0}};
}

void SessionWatch::obey(const pollfd *polled) const
{
    if (polled[0].revents != 0) hear_receiver(); // first, because it tells why
    if ((polled[1].revents != 0 || polled[2].revents != 0) && defence_is_on("sync-ends-with-session"))
        throw Failure(ExitStatus::system_failure, ended_text);
}

void SessionWatch::check() const
{
    std::array<pollfd, 3> polled = waits();
    if (poll(polled.data(), polled.size(), 0) > 0) obey(polled.data());
}

void EarlyMessages::hear()
{
    constexpr std::size_t limit = 64; // more than these say nothing new
    const ReceiverEvent event = receiver_.receive();
    const auto *bytes = std::get_if<std::string>(&event);
    if (bytes == nullptr && defence_is_on("sync-ends-with-session")) throw Failure(ExitStatus::system_failure, ended_text);
    if (bytes == nullptr) return;
    WrapperMessage message = decode_wrapper_message(*bytes);
    const auto *signal = std::get_if<ForwardSignal>(&message);
    if (signal != nullptr && asks_for_end(signal->number)) throw EndedBySignal{signal->number};
    if (messages_.size() < limit) messages_.push_back(message);
}

void hand_record_over(const AsRoot &root, const Policy &policy, const EnvironmentInput &environment, const LaunchRecord &record,
                      FdRef control, FdRef terminal, FdRef mode_changer)
{
    if (policy.env_files.empty() || !defence_is_on("late-secrets"))
        return send_launch(control, record, terminal, mode_changer, in_seconds(record_patience_seconds));
    Child sender(root, "sender of the policy's variables", [&] {
        EnvironmentInput with_values = environment;
        with_values.managed_files = read_managed_env_files(policy.env_files);
        LaunchRecord complete = record;
        complete.environment = compose_environment(with_values);
        send_launch(control, complete, terminal, mode_changer, in_seconds(record_patience_seconds));
        return std::string();
    });
    sender.receive_long(record_patience_seconds + child_patience_seconds);
}

Receiver::Receiver(const AsRoot &root, const Account &caller, const AccessRules &rules, const ToolchainsPolicy &toolchains, FdRef wrapper)
    : child_(root, "receiver of the request", caller, {wrapper.get()},
             [&](const AsUser & /*user*/, FdRef channel) { serve_caller(caller, rules, toolchains, wrapper, channel); })
{
}

Request Receiver::request()
{
    // The child gives up first, and says why.
    return decode_request(child_.receive_long(request_patience_seconds + child_patience_seconds));
}

void Receiver::start_handover(FdRef control)
{
    send_packet(child_.channel(), "S", {control.get()}, in_seconds(child_patience_seconds));
}

ReceiverEvent Receiver::receive()
{
    try {
        const std::optional<Packet> packet = child_.receive_one();
        if (packet && packet->bytes == std::string(1, handed_over_tag)) return StdioHandedOver{};
        if (packet && packet->bytes[0] == message_tag) return packet->bytes.substr(1);
    } catch (const Failure &) { // NOLINT(bugprone-empty-catch): its user may kill the child: that ends the session like the wrapper's death
    }
    return WrapperGone{};
}

} // namespace pi_agent
