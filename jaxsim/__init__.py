"""jaxsim: differentiable contact simulation in pure JAX.

SI units, radians, quaternions xyzw, forces on the colliding body by the collider. See README.md for the conventions.
"""

from .contact.params import (
    ColliderType,
    ContactParams,
    FrictionModel,
    calibrate_normal_viscous_damping_coefficient,
    effective_coefficient_of_restitution,
)
from .geometry.mass import (
    MassProperties,
    inertia_from_cad_products,
    mass_properties,
    rotate_inertia,
    translate_inertia,
    translate_inertia_to_center,
)
from .geometry.mesh import TriMesh
from .geometry.sdf_build import GridSdfParams, GridSdfResolutionMode
from .geometry.sdf_grid import SdfGrid
from .geometry.shapes import Box, Capsule, Cylinder, Plane, Sphere
from .geometry.subsampling import BoundarySubsampling, SubsamplingStrategy
from .integrate.params import SolverParams
from .integrate.report import StepReport
from .io.save import Saved, load, save
from .io.trajectory import load_trajectory as _load_trajectory
from .io.trajectory import save_trajectory as _save_trajectory
from .math import rotation
from .math.spatial import Pose, Twist, Wrench
from .model.control import Control, ForceMode, apply_force
from .model.model import Actor, Model
from .model.pair_params import pair_parameters
from .model.parameters import get, replace, resize, scale_mass
from .model.scene import Scene
from .model.state import State, com_position, pose, set_pose, set_velocity, velocity
from .observe.contacts import ContactPoints, contact_force, contact_points, evaluate_contacts
from .observe.diagnosis import Diagnosis, PairLimits, diagnose
from .observe.distance import signed_distance
from .observe.resultants import (
    ContactChanges,
    ContactResultant,
    contact_changes,
    contact_resultant,
    node_forces,
    touching,
)
from .optimize.gradient_check import GradientCheck, gradient_check
from .optimize.minimize import EndReason, Iterate, Optimized, optimize
from .rollout import rollout, rollout_batch
from .solve.newton import ConvergenceMode, LineSearchType
from .solve.results import Status, StopReason
from .step import step
from .trajectory import Trajectory
from .view.trajectory import plot_trajectory as _plot_trajectory
from .view.trajectory import show_trajectory as _show_trajectory
from .view.trajectory import trajectory_to_html as _trajectory_to_html

__all__ = [
    "Actor",
    "BoundarySubsampling",
    "Box",
    "Capsule",
    "ColliderType",
    "ContactChanges",
    "ContactParams",
    "ContactPoints",
    "ContactResultant",
    "Control",
    "ConvergenceMode",
    "Cylinder",
    "Diagnosis",
    "EndReason",
    "ForceMode",
    "FrictionModel",
    "GradientCheck",
    "GridSdfParams",
    "GridSdfResolutionMode",
    "Iterate",
    "LineSearchType",
    "MassProperties",
    "Model",
    "Optimized",
    "PairLimits",
    "Plane",
    "Pose",
    "Saved",
    "Scene",
    "SdfGrid",
    "SolverParams",
    "Sphere",
    "State",
    "Status",
    "StepReport",
    "StopReason",
    "SubsamplingStrategy",
    "Trajectory",
    "TriMesh",
    "Twist",
    "Wrench",
    "apply_force",
    "calibrate_normal_viscous_damping_coefficient",
    "com_position",
    "contact_changes",
    "contact_force",
    "contact_points",
    "contact_resultant",
    "diagnose",
    "effective_coefficient_of_restitution",
    "evaluate_contacts",
    "get",
    "gradient_check",
    "inertia_from_cad_products",
    "load",
    "mass_properties",
    "node_forces",
    "optimize",
    "pair_parameters",
    "pose",
    "replace",
    "resize",
    "rollout",
    "rollout_batch",
    "rotate_inertia",
    "rotation",
    "save",
    "scale_mass",
    "set_pose",
    "set_velocity",
    "signed_distance",
    "step",
    "touching",
    "translate_inertia",
    "translate_inertia_to_center",
    "velocity",
]

__version__ = "0.1.0.dev0"

Trajectory.present_with(
    save=_save_trajectory,
    load=_load_trajectory,
    plot=_plot_trajectory,
    to_html=_trajectory_to_html,
    show=_show_trajectory,
)
