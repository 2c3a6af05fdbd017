"""The public names of the service."""

from costscape.serve.process import run as run
from costscape.serve.process import write_references as write_references
from costscape.serve.reference import Reference as Reference
from costscape.serve.reference import make_reference as make_reference
from costscape.serve.service import create_app as create_app
from costscape.serve.service_settings import Limits as Limits
from costscape.serve.service_settings import Settings as Settings
from costscape.serve.source import Source as Source
from costscape.serve.source import parse_sources as parse_sources
