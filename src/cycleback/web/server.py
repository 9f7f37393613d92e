"""Serve the studio: until Ctrl-C, or in a thread beside other work."""

import socket
import threading
import time
from collections.abc import Callable

import uvicorn

from cycleback.errors import UserError
from cycleback.web.app import Studio, build_app
from cycleback.web.security import Access

DEFAULT_PORT = 8765  # tried first, so that the address of a project mostly stays the same
START_S = 20.0
STOP_S = 2  # how long open requests may go on when the studio ends


class StudioServer:
    """The studio at an address of this machine."""

    def __init__(self, studio: Studio, *, host: str = "127.0.0.1", port: int | None = None) -> None:
        """Take a port of `host`: the given one, else 8765 if it is free, else any.

        At a `host` that other machines can reach, the address holds a token.
        """
        self.studio = studio
        self.access = Access.for_host(host)
        self._socket = take_port(host, port)
        self.port = int(self._socket.getsockname()[1])
        config = uvicorn.Config(
            build_app(studio, self.access),
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=STOP_S,
            server_header=False,
        )
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        host = self.access.host
        if host in ("0.0.0.0", "::"):
            host = socket.gethostname()
        token = f"#token={self.access.token}" if self.access.token else ""
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/{token}"

    def run(self, on_start: Callable[[], None] = lambda: None) -> None:
        """Serve until Ctrl-C; calls `on_start` when requests are answered."""
        threading.Thread(target=self._call_when_started, args=(on_start,), daemon=True).start()
        try:
            self._server.run(sockets=[self._socket])
        except KeyboardInterrupt:
            pass  # uvicorn has closed everything
        finally:
            self._socket.close()

    def start(self) -> "StudioServer":
        """Serve in a thread, and return when requests are answered."""
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name="studio", daemon=True
        )
        self._thread.start()
        if not self._wait():
            raise UserError(f"the studio did not start at {self.address}")
        return self

    def close(self) -> None:
        """Stop a server that was started in a thread."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
        self._socket.close()

    def _call_when_started(self, action: Callable[[], None]) -> None:
        if self._wait():
            action()

    def _wait(self) -> bool:
        end = time.monotonic() + START_S
        while not self._server.started and time.monotonic() < end:
            time.sleep(0.02)
        return self._server.started


def take_port(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens at a port of `host`; None takes 8765 if it is free, else any."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for choice in (port,) if port is not None else (DEFAULT_PORT, 0):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, choice))
            return listener
        except OSError as error:
            listener.close()
            reason = error
    if isinstance(reason, socket.gaierror):
        raise UserError(f"cannot listen at {host!r}: {reason.strerror}; choose another --host")
    place = f"{host}:{DEFAULT_PORT if port is None else port}"
    raise UserError(f"cannot listen at {place}: {reason.strerror or reason}; choose another --host or --port")
