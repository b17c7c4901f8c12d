"""Monitoring: the share of positives over time, with alarms whose rate of false ones is stated."""

from priorshift.monitoring.monitor import Monitor as Monitor
from priorshift.monitoring.points import Alarm as Alarm
from priorshift.monitoring.points import MonitorPoint as MonitorPoint
