"""`curricula demo`: what a curriculum does, seen on this machine in a few minutes."""

from curricula.cli.demo.command import command

__all__ = ["command"]
