"""Decides who may talk to a task: loopback; elsewhere TLS and a token, or an explicit wish.

It reads the environment, so that a program written for TensorFlow needs no change:

- ``RUNNEL_CLUSTER_TOKEN`` (or ``RUNNEL_CLUSTER_TOKEN_FILE``): a secret that all tasks share;
- ``RUNNEL_TLS_CERT``, ``RUNNEL_TLS_KEY``: this task's certificate and key, in PEM files;
- ``RUNNEL_TLS_CA``: the authority that signs the others' certificates; a server that has one asks
  clients for theirs too, unless ``RUNNEL_TLS_CLIENTS=any``;
- ``RUNNEL_INSECURE=1``: addresses other than loopback without any of this.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runnel.graph.errors import FailedPreconditionError

PROTOCOL = "runnel/1"
"""What tasks speak with each other, in TLS's terms; clients speak ``h2``."""


@dataclass(frozen=True, slots=True)
class Security:
    """The secrets of a task; see the module."""

    token: bytes = b""
    certificate: str = ""
    key: str = ""
    authority: str = ""
    asks_clients: bool = True
    insecure: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Security:
        """Reads the variables of the environment."""
        token = environment.get("RUNNEL_CLUSTER_TOKEN", "").encode()
        if not token and environment.get("RUNNEL_CLUSTER_TOKEN_FILE"):
            token = Path(environment["RUNNEL_CLUSTER_TOKEN_FILE"]).read_bytes().strip()
        return cls(
            token,
            environment.get("RUNNEL_TLS_CERT", ""),
            environment.get("RUNNEL_TLS_KEY", ""),
            environment.get("RUNNEL_TLS_CA", ""),
            environment.get("RUNNEL_TLS_CLIENTS", "") != "any",
            environment.get("RUNNEL_INSECURE", "") not in ("", "0"),
        )

    @property
    def uses_tls(self) -> bool:
        """True when connections are encrypted."""
        return bool(self.certificate or self.authority)

    def require_allowed(self, host: str) -> None:
        """An error when a task may not listen on ``host`` as things are."""
        if self.insecure or is_loopback(host) or (self.certificate and self.token):
            return
        missing = "a certificate (RUNNEL_TLS_CERT and RUNNEL_TLS_KEY)"
        if not self.token:
            missing = "a token (RUNNEL_CLUSTER_TOKEN)" + (
                "" if self.certificate else f" and {missing}"
            )
        raise FailedPreconditionError(
            None,
            None,
            f"A task on {host!r} can be reached from other machines, so it needs {missing}; "
            "whoever can reach it could run any graph. RUNNEL_INSECURE=1 allows it nevertheless, "
            "for a network that nobody else is on",
        )

    def server_context(self) -> ssl.SSLContext | None:
        """How a connection that was accepted is encrypted, if it is."""
        if not self.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_cert_chain(self.certificate, self.key or None)
        context.set_alpn_protocols([PROTOCOL, "h2"])
        if self.authority and self.asks_clients:
            context.load_verify_locations(self.authority)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def client_context(self) -> ssl.SSLContext | None:
        """How a connection that this task makes is encrypted, if it is."""
        if not self.uses_tls:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.load_verify_locations(self.authority or self.certificate)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key or None)
        context.set_alpn_protocols([PROTOCOL])
        return context

    def proof(self, nonce: bytes, role: str) -> bytes:
        """That this task knows the token: nobody who sees it learns the token."""
        return hmac.digest(self.token, role.encode() + nonce, "sha256") if self.token else b""

    def accepts(self, proof: bytes, nonce: bytes, role: str) -> bool:
        """True when ``proof`` is the other side's for ``nonce``."""
        return not self.token or hmac.compare_digest(proof, self.proof(nonce, role))


def is_loopback(host: str) -> bool:
    """True for an address that only this machine can reach."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        pass
    try:
        found = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    return bool(found) and all(ipaddress.ip_address(a).is_loopback for a in found)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``."""
    host, _, port = address.removeprefix("grpc://").rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"An address is host:port, such as localhost:2222, not {address!r}")
    return host.strip("[]"), int(port)
