"""Contact parameters of one actor, and what they become for an ordered pair (colliding A, collider B)."""

import enum

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..math.safe import safe_sqrt

Number = float | Float[Array, "*b"]


class FrictionModel(enum.Enum):
    """How Coulomb friction is rounded at zero slip."""

    C1_REGULARIZED = "c1"  # reaches the Coulomb bound at the falloff velocity
    CINF_REGULARIZED = "cinf"  # approaches it asymptotically, infinitely smooth


class ColliderType(enum.Enum):
    """What other actors are tested against."""

    AUTO = "auto"  # from the shape: a primitive's own, SDF for a mesh or a grid
    NONE = "none"
    PLANE = "plane"
    SPHERE = "sphere"
    BOX = "box"
    CAPSULE = "capsule"
    CYLINDER = "cylinder"
    SDF = "sdf"  # distances sampled on a grid
    MESH = "mesh"  # exact distance to the nearest of its triangles; every sample searches them all
    POINT_CLOUD = "point_cloud"  # a ball about each of its surface samples

    @property
    def padded(self) -> bool:
        """Whether bodies with such a collider meet others at their padded threshold."""
        return self in (ColliderType.NONE, ColliderType.POINT_CLOUD)


class ContactParams(eqx.Module):
    """Contact material of one actor; in a model every field holds one number per actor.

    Defaults and names follow the reference engine (SuperDex Physics 1.0.1). `penalty_coefficient` is a pressure per
    depth, not a spring constant: times the touching area it gives N/m.
    """

    penalty_coefficient: Number = 1e9  # k [Pa/m]
    penalty_smoothing_half_distance: Number = 5e-3  # s [m]
    penalty_threshold_default: Number = 1e-3  # distance at which the force sets in [m]
    penalty_threshold_extra_padding: Number = 0.0  # added for actors that cannot themselves be collided with [m]
    max_alignment_normals: Number = 0.0  # m: samples whose normal agrees more than this with the gradient are dropped
    coulomb_friction_coefficient: Number = 0.5  # mu
    friction_falloff_vel: Number = 0.01  # slip speed below which friction fades [m/s]
    viscous_friction_coefficient: Number = 0.0  # c_t [s/m], times the normal load
    normal_viscous_damping_coefficient: Number = 0.0  # c_n [s/m], times the normal load
    friction_with_collider_normal: bool = eqx.field(static=True, default=True)  # else the sample's own normal


class PairParams(eqx.Module):
    """Effective parameters of an ordered pair."""

    penalty_coefficient: Number
    smoothing_half_distance: Number
    threshold: Number
    max_alignment_normals: Number
    coulomb_friction_coefficient: Number
    friction_falloff_vel: Number
    viscous_friction_coefficient: Number
    normal_viscous_damping_coefficient: Number


def combine(colliding: ContactParams, collider: ContactParams, *, static_collider: bool, padded: Array) -> PairParams:
    """Effective parameters when `colliding` (A) owns the samples and `collider` (B) the distance.

    Friction and damping coefficients are geometric means: either side at zero switches the mechanism off. There the
    mean has a square-root cusp, and its derivative is given as zero. Stiffness and falloff velocity are geometric
    means of two dynamic actors but A's alone against a static B; geometry-like fields are B's.

    Args:
        padded: where A has no collider of its own or a point cloud: B's extra padding is then added to the threshold.

    Source: SuperDex Physics 1.0.1, `CombineContactParams`.
    """

    def mean(field: str) -> Number:
        return safe_sqrt(getattr(colliding, field) * getattr(collider, field))

    def own_if_static(field: str) -> Number:
        return getattr(colliding, field) if static_collider else mean(field)

    return PairParams(
        penalty_coefficient=own_if_static("penalty_coefficient"),
        smoothing_half_distance=collider.penalty_smoothing_half_distance,
        threshold=collider.penalty_threshold_default + jnp.where(padded, collider.penalty_threshold_extra_padding, 0.0),
        max_alignment_normals=collider.max_alignment_normals,
        coulomb_friction_coefficient=mean("coulomb_friction_coefficient"),
        friction_falloff_vel=own_if_static("friction_falloff_vel"),
        viscous_friction_coefficient=mean("viscous_friction_coefficient"),
        normal_viscous_damping_coefficient=mean("normal_viscous_damping_coefficient"),
    )


def calibrate_normal_viscous_damping_coefficient(restitution: Number, impact_speed: Number) -> Number:
    """The c_n [s/m] that gives a coefficient of restitution in (0, 1] at an impact speed [m/s].

    A fit for stiff normal impacts as the step goes to zero; Backward Euler dissipates besides. It diverges as the
    restitution goes to zero. Source: SuperDex Physics 1.0.1.
    """
    e = restitution
    return (1 - e) * (1 + 4.5 * e) / (e * (1 + 8 * e / 3)) / impact_speed


def effective_coefficient_of_restitution(normal_viscous_damping_coefficient: Number, impact_speed: Number) -> Number:
    """The restitution that a c_n [s/m] is calibrated for at an impact speed [m/s]; inverse of the calibration."""
    a = normal_viscous_damping_coefficient * impact_speed
    b = a - 3.5
    return 2 / (b + jnp.sqrt(b * b + 4 * (4.5 + 8 * a / 3)))
