// Copies bytes between two sockets, and counts what all relays hold.
#include "gate/gate.hpp"

#include "common/seams/seams.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace pi_agent {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto to_speak_first = std::chrono::seconds(10);
constexpr auto for_farewell = std::chrono::seconds(3);
// Bytes that are thrown away, so that the kernel does not cut the farewell off: who sends a large body hears it only after that.
constexpr std::size_t farewell_reads = 64UL * 1024 * 1024;
constexpr int rounds_at_once = 4; // then others have their turn, as after one large read
// What the judge looks at, with what was not enough for it, is a piece at most.
constexpr std::size_t judged_at_once = one_piece - hello_limit;
static_assert(request_head_limit <= hello_limit);

// One for all: what a side does not take at once is kept by its relay.
std::array<char, most_at_once> &shared_buffer()
{
    static std::array<char, most_at_once> buffer;
    return buffer;
}

void close_side(tcp::socket &socket, bool breaks_off)
{
    error_code ignored;
    if (breaks_off) socket.set_option(asio::socket_base::linger(true, 0), ignored);
    socket.close(ignored);
}

class Relay : public std::enable_shared_from_this<Relay> {
public:
    explicit Relay(RelaySetup setup)
        : setup_(std::move(setup)), outwards_{setup_.session, setup_.outside}, inwards_{setup_.outside, setup_.session},
          timer_(setup_.session.get_executor())
    {
    }

    void start()
    {
        error_code ignored;
        for (auto *socket : {&setup_.session, &setup_.outside}) {
            socket->non_blocking(true, ignored);
            socket->set_option(tcp::no_delay(true), ignored);
        }
        last_ = begun_ = std::chrono::steady_clock::now();
        watch();
        if (!setup_.judge) {
            outwards_.held.replace(std::move(setup_.first));
            outwards_.further = setup_.further;
            awaits_upgrade_ = setup_.is_upgrade;
        } else if (!setup_.first.empty() && !take(outwards_, std::string(std::move(setup_.first)))) {
            return;
        }
        flush(outwards_);
        wait_for_input(inwards_);
    }

private:
    struct Direction {
        tcp::socket &from;
        tcp::socket &to;
        Held held = {};
        std::uint64_t further = without_end; // bytes that may still come
        bool has_ended = false, is_closed = false;
    };

    bool is_judged(const Direction &way) const { return &way == &outwards_ && setup_.judge; }

    // What came, through the judge or straight on. False when the relay ended.
    bool take(Direction &way, std::string_view bytes)
    {
        if (is_judged(way)) {
            if (way.held.is_empty()) begun_ = std::chrono::steady_clock::now();
            way.held.append(bytes);
            FirstBytes first = setup_.judge(way.held.rest());
            if (first.state == FirstBytes::State::refused) return refuse(std::move(first.farewell));
            if (first.state == FirstBytes::State::incomplete) return true;
            setup_.judge = nullptr;
            way.held.replace(std::move(first.forward));
            way.further = first.further;
            awaits_upgrade_ = first.is_upgrade;
            return true;
        }
        if (awaits_upgrade_ && &way == &inwards_) hear_answer(bytes);
        bytes = bytes.substr(0, static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), way.further)));
        if (way.further != without_end) way.further -= bytes.size();
        if (way.held.is_empty()) bytes.remove_prefix(write_some(way, bytes));
        way.held.append(bytes);
        return is_open_;
    }

    // Until the server has become a WebSocket, what the session says could be another request, which nobody has judged.
    void hear_answer(std::string_view bytes)
    {
        constexpr std::string_view switching = "HTTP/1.1 101";
        answer_.append(bytes.substr(0, switching.size() - answer_.size()));
        if (answer_.size() < switching.size()) return;
        awaits_upgrade_ = false;
        if (answer_ == switching || !defence_is_on("gate-upgrade")) outwards_.further = without_end;
    }

    std::size_t write_some(Direction &way, std::string_view bytes)
    {
        std::size_t written = 0;
        while (written < bytes.size() && is_open_) {
            error_code problem;
            written += way.to.write_some(asio::buffer(bytes.data() + written, bytes.size() - written), problem);
            if (problem == asio::error::would_block) break;
            if (!problem) continue;
            if (&way == &outwards_) hear_last_words();
            end();
        }
        return written;
    }

    // A server that takes no more has often said why. What is there of it passes, as it would have without a relay.
    void hear_last_words()
    {
        std::array<char, 4096> bytes{};
        while (inwards_.held.is_empty() && !inwards_.has_ended) {
            error_code problem;
            const std::size_t count = setup_.outside.read_some(asio::buffer(bytes), problem);
            if (problem || setup_.session.write_some(asio::buffer(bytes.data(), count), problem) < count) return;
        }
    }

    void wait_for_input(Direction &way)
    {
        way.from.async_wait(tcp::socket::wait_read, [self = shared_from_this(), &way](const error_code &problem) {
            if (problem) return self->end();
            self->read(way);
        });
    }

    void read(Direction &way)
    {
        for (int round = 0; round < rounds_at_once && is_open_; ++round) {
            error_code problem;
            const std::size_t count =
                way.from.read_some(asio::buffer(shared_buffer(), is_judged(way) ? judged_at_once : Held::room()), problem);
            if (problem == asio::error::would_block) break;
            if (problem && problem != asio::error::eof) return end();
            last_ = std::chrono::steady_clock::now();
            way.has_ended = problem == asio::error::eof;
            if (way.has_ended || !take(way, {shared_buffer().data(), count}) || !way.held.is_empty() || count > one_piece) break;
        }
        if (is_open_) flush(way);
    }

    // Writes what is held, and reads on when all is written.
    void flush(Direction &way)
    {
        if (is_judged(way)) {
            if (!way.has_ended) return wait_for_input(way);
            if (!setup_.is_patient || !way.held.is_empty()) return end(); // it ended in the middle of what it had to say
            setup_.judge = nullptr;                                       // it only wants to listen
        }
        way.held.take(write_some(way, way.held.rest()));
        if (!is_open_) return;
        if (!way.held.is_empty()) {
            way.to.async_wait(tcp::socket::wait_write, [self = shared_from_this(), &way](const error_code &problem) {
                if (problem) return self->end();
                self->last_ = std::chrono::steady_clock::now();
                self->flush(way);
            });
            return;
        }
        if (!way.has_ended) return wait_for_input(way);
        error_code ignored;
        way.to.shutdown(tcp::socket::shutdown_send, ignored);
        way.is_closed = true;
        if (outwards_.is_closed && inwards_.is_closed) end(false);
    }

    bool refuse(std::string farewell)
    {
        is_open_ = false;
        timer_.cancel();
        close_side(setup_.outside, true);
        say_farewell(setup_.session, std::move(farewell), std::move(setup_.counted));
        return false;
    }

    void end(bool breaks_off = true)
    {
        if (!is_open_) return;
        is_open_ = false;
        timer_.cancel();
        close_side(setup_.session, breaks_off);
        close_side(setup_.outside, breaks_off);
    }

    // Ends what says nothing: at once for as long as the session has to speak first, and after the idle time.
    void watch()
    {
        const auto now = std::chrono::steady_clock::now();
        const bool must_speak = setup_.judge && (!setup_.is_patient || !outwards_.held.is_empty());
        const auto due = must_speak ? begun_ + to_speak_first : last_ + setup_.idle;
        if (due <= now) return end();
        timer_.expires_after(std::min<std::chrono::steady_clock::duration>(due - now, to_speak_first));
        timer_.async_wait([self = shared_from_this()](const error_code &problem) {
            if (!problem && self->is_open_) self->watch();
        });
    }

    RelaySetup setup_;
    Direction outwards_, inwards_;
    asio::steady_timer timer_;
    std::chrono::steady_clock::time_point last_, begun_;
    bool is_open_ = true;
    bool awaits_upgrade_ = false;
    std::string answer_ = {}; // its beginning, where an upgrade is awaited
};

class Farewell : public std::enable_shared_from_this<Farewell> {
public:
    Farewell(tcp::socket socket, std::string text, std::shared_ptr<void> counted)
        : socket_(std::move(socket)), text_(std::move(text)), counted_(std::move(counted)), timer_(socket_.get_executor())
    {
    }

    void start()
    {
        timer_.expires_after(for_farewell);
        timer_.async_wait([self = shared_from_this()](const error_code &) { close_side(self->socket_, false); });
        asio::async_write(socket_, asio::buffer(text_), [self = shared_from_this()](const error_code &problem, std::size_t) {
            error_code ignored;
            self->socket_.shutdown(tcp::socket::shutdown_send, ignored);
            self->read_away(problem, 0);
        });
    }

private:
    void read_away(const error_code &problem, std::size_t count)
    {
        read_ += count;
        if (problem || read_ > farewell_reads) {
            timer_.cancel(); // which closes the socket, too
            return;
        }
        // Nobody looks at what comes there.
        socket_.async_read_some(asio::buffer(shared_buffer()),
                                [self = shared_from_this()](const error_code &end, std::size_t more) { self->read_away(end, more); });
    }

    tcp::socket socket_;
    std::string text_;
    std::shared_ptr<void> counted_;
    asio::steady_timer timer_;
    std::size_t read_ = 0;
};

} // namespace

void start_relay(RelaySetup setup)
{
    std::make_shared<Relay>(std::move(setup))->start();
}

void say_farewell(tcp::socket &socket, std::string text, std::shared_ptr<void> counted)
{
    error_code ignored;
    socket.cancel(ignored);
    std::make_shared<Farewell>(std::move(socket), std::move(text), std::move(counted))->start();
}

} // namespace pi_agent
