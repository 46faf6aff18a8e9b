"""Random parts of a body's surface samples."""

import jax
import numpy as np
import pytest

import jaxsim as js
from jaxsim.geometry.quadrature import RULES, sample_surface
from jaxsim.geometry.shapes import surface_of
from jaxsim.geometry.subsampling import take_subset

STRATEGIES = list(js.SubsamplingStrategy)
SURFACE = surface_of(js.Sphere(0.05), 2)
SAMPLES = sample_surface(SURFACE.vertices, SURFACE.triangles, RULES["P1Q3"])
# A bar's long sides have eight times the area of its ends, on as many triangles.
BAR = surface_of(js.Box((0.4, 0.05, 0.05)))
BAR_SAMPLES = sample_surface(BAR.vertices, BAR.triangles, RULES["P1Q16"])


def drawn(samples, density, strategy, key=0):
    return js.BoundarySubsampling(density, strategy, key).draw(np.asarray(samples.weight))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_as_many_samples_are_kept_as_asked_for_and_the_area_stays(strategy):
    for density in (0.05, 0.3, 0.77):
        subset = drawn(SAMPLES, density, strategy)
        assert len(subset.sample.array) == round(density * len(SAMPLES.weight))
        assert (np.diff(subset.sample.array) > 0).all()
        kept = take_subset(SAMPLES, subset)
        np.testing.assert_allclose(kept.weight.sum(), SAMPLES.weight.sum(), rtol=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_samples_kept_are_the_samples(strategy):
    kept = take_subset(BAR_SAMPLES, drawn(BAR_SAMPLES, 1.0, strategy))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), kept, BAR_SAMPLES)


def test_a_key_keeps_the_same_samples_and_another_key_others():
    one, again = (drawn(SAMPLES, 0.2, STRATEGIES[0], 3) for _ in range(2))
    assert one == again
    assert one == drawn(SAMPLES, 0.2, STRATEGIES[0], jax.random.key(3))
    assert one != drawn(SAMPLES, 0.2, STRATEGIES[0], 4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_integrals_over_the_kept_samples_are_right_on_average(strategy):
    def integral(samples):  # of something uneven over the surface
        return float(samples.weight @ samples.position[0] ** 2)

    found = [integral(take_subset(BAR_SAMPLES, drawn(BAR_SAMPLES, 0.25, strategy, key))) for key in range(60)]
    # The mean is within four standard errors.
    assert abs(np.mean(found) - integral(BAR_SAMPLES)) < 4 * np.std(found) / np.sqrt(len(found))


def test_a_sample_is_kept_with_a_probability_in_proportion_to_its_area():
    weight, draws = np.asarray(BAR_SAMPLES.weight), 400
    kept = np.zeros(len(weight))
    for key in range(draws):
        kept[drawn(BAR_SAMPLES, 0.25, js.SubsamplingStrategy.AREA_PROPORTIONAL, key).sample.array] += 1
    expected = 48 * weight / weight.sum()
    assert expected.max() < 1
    # Six standard errors of a frequency.
    assert (abs(kept / draws - expected) < 6 * np.sqrt(expected * (1 - expected) / draws)).all()


def test_a_share_of_nothing_or_of_more_than_all_is_refused():
    for density in (0.0, 1.5, float("nan")):
        with pytest.raises(ValueError, match=r"density must be in \(0, 1\]"):
            js.BoundarySubsampling(density)


@pytest.fixture(scope="module")
def ball_on_floor():
    """A ball that keeps a third of its samples."""
    scene = js.Scene()
    scene.add_plane()
    third = js.BoundarySubsampling(1 / 3)
    ball = scene.add_rigid(js.Sphere(0.05), mass=1.0, position=(0, 0, 0.0495), subdivisions=1, subsampling=third)
    return ball, *scene.build()


def test_points_carry_the_ids_of_the_samples_on_the_whole_surface(ball_on_floor):
    ball, model, state = ball_on_floor
    info = model.body(ball)
    points = js.evaluate_contacts(model, state)
    surface = surface_of(js.Sphere(0.05), 1)
    whole = sample_surface(surface.vertices, surface.triangles, RULES["P1Q3"])
    expected = np.asarray(whole.position).T[np.asarray(points.sample)] + np.asarray(
        js.pose(model, state, ball).position
    )
    np.testing.assert_array_equal(points.sample, info.subset.sample.array)
    np.testing.assert_allclose(points.position, expected, atol=1e-15)


def test_a_new_size_takes_the_same_samples_of_the_new_surface(ball_on_floor):
    ball, model, _ = ball_on_floor

    def samples_of(radius):
        return js.resize(model, ball, radius=radius).samples[0]

    larger, rate = jax.jit(lambda r: jax.jvp(samples_of, (r,), (1.0,)))(0.1)
    np.testing.assert_allclose(larger.position, 2 * model.samples[0].position, rtol=1e-12)
    np.testing.assert_allclose(larger.weight, 4 * model.samples[0].weight, rtol=1e-12)
    np.testing.assert_allclose(rate.weight, 2 * larger.weight / 0.1, rtol=1e-12)
